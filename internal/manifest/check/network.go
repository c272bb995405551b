package check

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"david/internal/manifest/stream"
	"david/internal/mycnf"
)

// defaultPort is the one of servers that are told no other.
const defaultPort = 3306

// asking describes somebody who connects to a server through the pod's address, or from inside its container.
type asking struct {
	doc    stream.Document
	path   string
	port   int
	inside bool
}

// background matches a program that a shell's script goes on without.
var background = regexp.MustCompile(`[^&]&(?:[^&]|$)`)

// What a command has that asks a server by TCP, and the port it names. "localhost" alone means the socket to
// a client, which then ignores the port (mysql.cc, and the manual's "Connecting to the MySQL Server").
var (
	asksTCP  = regexp.MustCompile(`\b(?:mysql|mysqladmin|mariadb|mariadb-admin)\b.*\s(?:(?:-h\s*|--host[= ])(?:127\.0\.0\.1|::1)|--protocol[= ](?i:tcp))(?:\s|$)`)
	asksPort = regexp.MustCompile(`\s(?:-P\s*|--port[= ])(\S+)`)
)

// network finds servers that listen where nobody asks: a probe, or a Service of the stream. A script may
// start a server without network first, to set it up: what is said there is not of the one that stays.
func (c *checker) network(s server, p pod) {
	if script := commandLines(p.server()); background.MatchString(script) || len(daemon.FindAllString(script, -1)) > 1 {
		return
	}
	port, name, from := defaultPort, "", optionFile{}
	if value, file, ok := s.setting("port"); ok {
		n, err := strconv.Atoi(value)
		if err != nil {
			return
		}
		port, name, from = n, "port", file
	}
	closed := ""
	if value, file, ok := s.setting("bind_address"); ok && onlyLocal(value) {
		closed, name, from = "bind_address="+value, "bind_address", file
	}
	if value, file, ok := s.setting("skip_networking"); ok && (value == "" || mycnf.MatchValues("skip_networking", "ON", value) == mycnf.Same) {
		closed, name, from = "skip_networking", "skip_networking", file
	}
	for _, by := range c.askers(s, p) {
		switch {
		case by.inside && port != by.port:
			c.report(SeverityError, "network", by.doc, by.path, fmt.Sprintf("it asks port %d, and the server listens on %d", by.port, port), "use the same port in both")
		case closed != "" && by.port == port && !(by.inside && name == "bind_address"):
			c.reportSetting(SeverityError, "network", from, name, fmt.Sprintf("with %s nobody reaches the server through the pod's address, as %s of %s does", closed, by.path, by.doc.Object()), "remove it")
			return
		case port != defaultPort && by.port == defaultPort:
			c.report(SeverityError, "network", by.doc, by.path, fmt.Sprintf("it asks port %d, and the server of %s listens on %d", by.port, s.doc.Object(), port), "use the same port in both")
		}
	}
}

// onlyLocal tells whether a server that is bound to these addresses is reached from its own pod only.
func onlyLocal(addresses string) bool {
	for a := range strings.SplitSeq(addresses, ",") {
		if !slices.Contains([]string{"127.0.0.1", "::1", "localhost"}, strings.TrimSpace(a)) {
			return false
		}
	}
	return true
}

// askers lists the probes of the server's container and the Services of the stream that ask a port of it; not
// those that a proxy beside it may answer.
func (c *checker) askers(s server, p pod) (list []asking) {
	for _, probe := range []struct {
		name string
		is   *corev1.Probe
	}{{"startupProbe", p.server().StartupProbe}, {"livenessProbe", p.server().LivenessProbe}, {"readinessProbe", p.server().ReadinessProbe}} {
		if probe.is == nil {
			continue
		}
		if port := execPort(probe.is.Exec); port > 0 {
			list = append(list, asking{s.doc, p.in(probe.name + ".exec.command"), port, true})
		}
		if probe.is.TCPSocket == nil || probe.is.TCPSocket.Host != "" {
			continue
		}
		if port := portOf(p.server(), probe.is.TCPSocket.Port); port > 0 {
			list = append(list, asking{s.doc, p.in(probe.name + ".tcpSocket.port"), port, false})
		}
	}
	if len(p.spec.Containers) > 1 && slices.ContainsFunc(p.spec.Containers, func(other corev1.Container) bool {
		return besides.MatchString(imageBase(other.Image)) && !strings.Contains(other.Image, "exporter")
	}) {
		return list
	}
	for _, d := range c.docs {
		list = append(list, p.servicePorts(d)...)
	}
	return list
}

// execPort finds the port that a probe's client asks by TCP; 0 where it asks another way, or a variable names
// the port.
func execPort(exec *corev1.ExecAction) int {
	if exec == nil {
		return 0
	}
	command := strings.Join(exec.Command, " ")
	if !asksTCP.MatchString(command) {
		return 0
	}
	named := asksPort.FindStringSubmatch(command)
	if named == nil {
		return defaultPort
	}
	port, err := strconv.Atoi(strings.Trim(named[1], `'"`))
	if err != nil {
		return 0
	}
	return port
}

// servicePorts lists the ports of the server's container that a Service leads to.
func (p pod) servicePorts(d stream.Document) (list []asking) {
	var service corev1.ServiceSpec
	if d.Kind() != "Service" || d.Namespace() != "" && p.doc.Namespace() != "" && d.Namespace() != p.doc.Namespace() || !reread(d.Get("spec"), &service) || len(service.Selector) == 0 {
		return nil
	}
	match, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchLabels: service.Selector})
	if err != nil || !match.Matches(labels.Set(p.labels)) {
		return nil
	}
	for i, port := range service.Ports {
		target := port.TargetPort
		if target.Type == intstr.Int && target.IntVal == 0 || target.Type == intstr.String && target.StrVal == "" {
			target = intstr.FromInt32(port.Port)
		}
		others := slices.DeleteFunc(slices.Clone(p.spec.Containers), func(c corev1.Container) bool { return c.Name == p.server().Name })
		if len(others) > 0 && !declares(p.server().Ports, target) || slices.ContainsFunc(others, func(c corev1.Container) bool { return declares(c.Ports, target) }) {
			continue // another container's, or nobody says whose
		}
		if n := portOf(p.server(), target); n > 0 {
			list = append(list, asking{d, fmt.Sprintf("spec.ports[%d]", i), n, false})
		}
	}
	return list
}

// declares tells whether one of the ports is meant.
func declares(ports []corev1.ContainerPort, meant intstr.IntOrString) bool {
	return slices.ContainsFunc(ports, func(port corev1.ContainerPort) bool {
		return meant.Type == intstr.Int && port.ContainerPort == meant.IntVal || meant.Type == intstr.String && port.Name == meant.StrVal
	})
}

// portOf finds the number of a port of a container; 0 where it has none of that name.
func portOf(c corev1.Container, port intstr.IntOrString) int {
	if port.Type == intstr.Int {
		return int(port.IntVal)
	}
	for _, one := range c.Ports {
		if one.Name == port.StrVal {
			return int(one.ContainerPort)
		}
	}
	return 0
}
