package check

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"david/internal/manifest/operator"
	"david/internal/manifest/render"
	"david/internal/manifest/stream"
	"david/internal/mycnf"
)

// server describes a database server found in the objects, in a pod of a built-in kind or in an operator's
// resource.
type server struct {
	doc      stream.Document
	flavour  mycnf.Flavour
	version  mycnf.Version
	replicas int
	// replicated tells whether something keeps the replicas alike.
	replicated bool

	resources string // path of its requests and limits
	memory    int64  // limit in bytes; 0: none
	cnfs      []optionFile

	class     string // of its volume
	classPath string

	pod *pod // nil for operators' resources

	hostNetwork string // paths: of the field that puts its pods into their node's network
	annotations string // and of its pods' annotations; "" where there is no such field
}

// optionFile holds a my.cnf, or what takes its place.
type optionFile struct {
	doc      stream.Document
	path     string
	settings []mycnf.Setting
	lines    map[string]int // of the settings, in the document's file
}

// setting finds the value of a variable and the file that sets it last.
func (s server) setting(name string) (value string, from optionFile, ok bool) {
	for _, f := range s.cnfs {
		for _, one := range f.settings {
			if mycnf.WithoutLoose(one.Name) == name {
				value, from, ok = one.Value, f, true
			}
		}
	}
	return value, from, ok
}

// asked is what all files and arguments ask of the server, as it reads them.
func (s server) asked() map[string]string {
	var all []mycnf.Setting
	for _, f := range s.cnfs {
		all = append(all, f.settings...)
	}
	return mycnf.Asked(s.flavour, s.version, all)
}

// setter finds the last file that sets a variable, by whatever name.
func (s server) setter(name string) (from optionFile) {
	for _, f := range s.cnfs {
		if _, sets := mycnf.Asked(s.flavour, s.version, f.settings)[name]; sets {
			from = f
		}
	}
	return from
}

// lines lists all settings, with the names that the memory rule knows.
func (s server) lines() (all []mycnf.Setting) {
	for _, f := range s.cnfs {
		for _, one := range f.settings {
			one.Name = mycnf.WithoutLoose(one.Name)
			all = slices.DeleteFunc(all, func(before mycnf.Setting) bool { return before.Name == one.Name })
			all = append(all, one)
		}
	}
	return all
}

// pod holds a pod template of a workload.
type pod struct {
	doc       stream.Document
	path      string // of the pod's spec
	spec      corev1.PodSpec
	labels    map[string]string
	replicas  int
	claims    []corev1.PersistentVolumeClaim
	container int // the server's, of spec.Containers
}

// at writes a path in the pod's spec.
func (p pod) at(path string) string { return p.path + "." + path }

// in writes a path in the server's container.
func (p pod) in(path string) string {
	return fmt.Sprintf("%s.containers[%d].%s", p.path, p.container, path)
}

func (p pod) server() corev1.Container { return p.spec.Containers[p.container] }

// own gives the requests and limits of the pod as a whole; nil where it has none, or the cluster is older
// than Kubernetes 1.34 and knows none.
func (p pod) own() *corev1.ResourceRequirements {
	if r := p.spec.Resources; r != nil && len(r.Limits)+len(r.Requests) > 0 {
		return r
	}
	return nil
}

// servers finds the servers of all objects and applies the rules for them.
func (c *checker) servers() {
	for _, d := range c.docs {
		s, ok := c.server(d)
		if !ok {
			continue
		}
		if s.class != "" {
			c.used[s.class] = true
		}
		for _, rule := range []func(server){c.memory, c.dedicated, c.durability, c.advised, c.initFile, c.settings, c.pageSize, c.unreplicated, c.storageClass} {
			rule(s)
		}
		if s.pod == nil {
			c.equalResources(s)
			c.networkCosts(s)
			continue
		}
		for _, rule := range []func(server, pod){c.qos, c.startup, c.liveness, c.network, c.stop, c.privileges, c.volumes} {
			rule(s, *s.pod)
		}
		c.networkCosts(s)
	}
}

// server finds the database server of an object.
func (c *checker) server(d stream.Document) (server, bool) {
	if p, ok := podOf(d); ok {
		return c.podServer(p)
	}
	view, ok := operator.ViewOf(d)
	if !ok {
		return server{}, false
	}
	return c.operated(d, view), true
}

// podPaths tells where pod templates stand, by kind.
func podPaths() map[string]string {
	return map[string]string{"Pod": "spec", "StatefulSet": "spec.template.spec", "Deployment": "spec.template.spec", "DaemonSet": "spec.template.spec",
		"ReplicaSet": "spec.template.spec", "Job": "spec.template.spec", "CronJob": "spec.jobTemplate.spec.template.spec"}
}

// podOf reads the pod template of an object; ok is false where it has none that can be read.
func podOf(d stream.Document) (p pod, ok bool) {
	p = pod{doc: d, path: podPaths()[d.Kind()], replicas: 1}
	if p.path == "" || !reread(d.Get(p.path), &p.spec) {
		return p, false
	}
	if meta := strings.TrimSuffix(p.path, "spec") + "metadata.labels"; !reread(d.Get(meta), &p.labels) {
		p.labels = nil
	}
	if n, err := asInt(d.Get("spec.replicas")); err == nil {
		p.replicas = n
	}
	if !reread(d.Get("spec.volumeClaimTemplates"), &p.claims) {
		p.claims = nil
	}
	return p, true
}

// reread decodes a value into a type; what does not fit was reported by the schema.
func reread(value, into any) bool {
	if value == nil {
		return false
	}
	text, err := json.Marshal(value)
	return err == nil && json.Unmarshal(text, into) == nil
}

// asInt reads a value that is a whole number.
func asInt(v any) (int, error) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, fmt.Errorf("no number")
	}
	i, err := n.Int64()
	return int(i), err
}

// imageName takes the name and the tag out of a reference to an image.
var imageName = regexp.MustCompile(`^(?:.*/)?([^/:@]+)(?::([^@/]+))?(?:@.*)?$`)

// serverImage tells what server an image holds; ok is false where it holds none.
func serverImage(image string) (f mycnf.Flavour, v mycnf.Version, ok bool) {
	m := imageName.FindStringSubmatch(image)
	if m == nil {
		return f, v, false
	}
	name := strings.ToLower(m[1])
	switch {
	case besides.MatchString(name):
		return f, v, false
	case strings.Contains(name, "mariadb"):
		f = mycnf.MariaDB
	case strings.Contains(name, "percona"), strings.Contains(name, "pxc"):
		f = mycnf.Percona
	case strings.Contains(name, "mysql"), name == "community-server":
		f = mycnf.MySQL
	default:
		return f, v, false
	}
	if v, err := mycnf.ParseRelease(m[2]); err == nil {
		return f, v, true
	}
	return f, render.LongTerm(f), true
}

// isServerEnv tells whether a variable is one by which the images of servers are known.
func isServerEnv(e corev1.EnvVar) bool {
	return slices.Contains([]string{"MYSQL_ROOT_PASSWORD", "MARIADB_ROOT_PASSWORD", "MYSQL_ROOT_PASSWORD_FILE", "MARIADB_ROOT_PASSWORD_FILE", "MYSQL_ALLOW_EMPTY_PASSWORD",
		"MARIADB_ALLOW_EMPTY_ROOT_PASSWORD", "MYSQL_RANDOM_ROOT_PASSWORD", "MARIADB_RANDOM_ROOT_PASSWORD"}, e.Name)
}

// podServer finds the server's container in a pod: see serverContainer.
func (c *checker) podServer(p pod) (server, bool) {
	at, ok := serverContainer(p)
	if !ok {
		return server{}, false
	}
	container := p.spec.Containers[at]
	f, v, known := serverImage(container.Image)
	if !known {
		f, v = mycnf.MySQL, render.LongTerm(mycnf.MySQL)
	}
	p.container = at
	s := server{doc: p.doc, flavour: f, version: v, replicas: p.replicas, replicated: c.replicates(p), resources: p.in("resources"), pod: &p,
		memory: container.Resources.Limits.Memory().Value(), cnfs: append(c.mounted(p), arguments(p, f, v)...)}
	s.hostNetwork, s.annotations = p.at("hostNetwork"), strings.TrimSuffix(p.path, "spec")+"metadata.annotations"
	if own := p.own(); own != nil && s.memory == 0 {
		s.memory, s.resources = own.Limits.Memory().Value(), p.at("resources")
	}
	for j, claim := range p.claims {
		if claim.Spec.StorageClassName != nil && s.class == "" {
			s.class, s.classPath = *claim.Spec.StorageClassName, fmt.Sprintf("spec.volumeClaimTemplates[%d].spec.storageClassName", j)
		}
	}
	c.claimed(&s)
	return s, true
}

// claimed takes the storage class from a claim that the pod refers to.
func (c *checker) claimed(s *server) {
	for i, v := range s.pod.spec.Volumes {
		if v.PersistentVolumeClaim == nil || s.class != "" {
			continue
		}
		if claim, ok := c.find("PersistentVolumeClaim", s.doc.Namespace(), v.PersistentVolumeClaim.ClaimName); ok {
			s.class = stream.Text(claim.Get("spec.storageClassName"))
			s.classPath = s.pod.at(fmt.Sprintf("volumes[%d].persistentVolumeClaim", i))
		}
	}
}

// parsed reads the text of an option file.
func (c *checker) parsed(e entry, f mycnf.Flavour, v mycnf.Version) optionFile {
	file, err := mycnf.Parse(strings.NewReader(e.text), e.path)
	if err != nil {
		c.report(SeverityError, "my-cnf", e.doc, e.path, err.Error(), "correct it: the server does not start with it")
		return optionFile{doc: e.doc, path: e.path}
	}
	o := optionFile{doc: e.doc, path: e.path, settings: settingsOf(file, f, v), lines: map[string]int{}}
	for _, item := range file.Items {
		line := 0
		if e.doc.Literal(e.path) && !e.coded {
			line = e.doc.LineAt(e.path) + item.Line
			o.lines[mycnf.WithoutLoose(item.Name)] = line
		}
		c.misplaced(o, item, line)
	}
	return o
}

// settingsOf lists what a file sets, as its server takes it; for any server where the image does not tell which it is.
func settingsOf(file mycnf.File, f mycnf.Flavour, v mycnf.Version) []mycnf.Setting {
	if f == "" {
		return file.Settings(mycnf.ServerGroups(f, v)...)
	}
	return file.ServerSettings(f, v)
}

func sortedKeys(m map[string]any) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// operated reads the server of an operator's resource.
func (c *checker) operated(d stream.Document, view operator.View) server {
	s := server{doc: d, flavour: view.Flavour, version: view.Version, replicas: 1, replicated: view.Replicates(d), resources: view.Resources, classPath: view.Class,
		hostNetwork: view.HostNetwork, annotations: view.Annotations}
	if f, v, ok := serverImage(stream.Text(d.Get(view.Image))); ok && f == view.Flavour {
		s.version = v
	}
	if n, err := asInt(d.Get(view.Replicas)); err == nil {
		s.replicas = n
	}
	s.memory, _ = d.Bytes(view.Resources + ".limits.memory")
	s.class = stream.Text(d.Get(view.Class))
	switch {
	case view.Cnf != "":
		if text := stream.Text(d.Get(view.Cnf)); text != "" {
			s.cnfs = []optionFile{c.parsed(entry{doc: d, path: view.Cnf, text: text}, s.flavour, s.version)}
		}
	case d.Kind() == "MySQLCluster":
		name := stream.Text(d.Get("spec.mysqlConfigMapName"))
		if config, ok := c.find("ConfigMap", d.Namespace(), name); ok && name != "" {
			s.cnfs = []optionFile{keyed(config, "data")}
		} else if name != "" {
			c.unseen[fmt.Sprintf("the my.cnf of %s: ConfigMap %s is not in the stream", d.Object(), name)] = true
		}
	default:
		s.cnfs = c.parameters(d)
	}
	return s
}

// keyed reads settings that are keys of a map.
func keyed(d stream.Document, path string) optionFile {
	f := optionFile{doc: d, path: path}
	f.lines = map[string]int{}
	data, _ := d.Get(path).(map[string]any)
	for _, key := range sortedKeys(data) {
		f.lines[mycnf.WithoutLoose(key)] = d.LineAt(stream.Step(path, key))
		f.settings = append(f.settings, mycnf.Setting{Name: mycnf.Normalise(key), Value: stream.Text(data[key])})
	}
	return f
}

// parameters reads the settings of a Cluster of KubeBlocks.
func (c *checker) parameters(cluster stream.Document) (files []optionFile) {
	for _, d := range c.docs {
		if d.Kind() != "Parameter" || stream.Text(d.Get("spec.clusterName")) != cluster.Name() {
			continue
		}
		components, _ := d.Get("spec.componentParameters").([]any)
		for i := range components {
			files = append(files, keyed(d, fmt.Sprintf("spec.componentParameters[%d].parameters", i)))
		}
	}
	return files
}
