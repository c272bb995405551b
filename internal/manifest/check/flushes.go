package check

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"david/internal/host"
	"david/internal/manifest/stream"
)

// flushes finds what lies under databases and leaves out their flushes: options and parameters of volumes, folders of a
// node that are memory, and what the pods' own commands switch off.
func (c *checker) flushes() {
	for _, d := range c.docs {
		switch d.Kind() {
		case "StorageClass":
			c.volumeOptions(d, severityOf(c.used[d.Name()]), "mountOptions", "parameters")
		case "VolumeAttributesClass":
			c.volumeOptions(d, SeverityWarning, "", "parameters")
		case "PersistentVolume":
			c.persistentVolume(d, severityOf(c.used[stream.Text(d.Get("spec.storageClassName"))]))
		case "ConfigMap", "Secret":
			c.texts(d)
		}
		if p, ok := podOf(d); ok {
			c.podFlushes(p)
		}
	}
}

// Flushes finds what of a storage class that a cluster has leaves out flushes of the server that uses it.
func (u ClassUse) Flushes(class *storagev1.StorageClass) (found []Finding, err error) {
	own := class.DeepCopy()
	own.APIVersion, own.Kind = "storage.k8s.io/v1", "StorageClass" // which a client leaves out
	text, err := json.Marshal(own)
	if err != nil {
		return nil, fmt.Errorf("cannot judge StorageClass %s of the cluster: %w", u.Class, err)
	}
	docs, problems := stream.Documents(u.Class, text)
	if len(docs) != 1 || len(problems) > 0 {
		return nil, fmt.Errorf("cannot judge StorageClass %s of the cluster: it does not read as one object: %v", u.Class, problems)
	}
	c := checker{}
	c.volumeOptions(docs[0], SeverityError, "mountOptions", "parameters")
	for _, f := range c.found {
		f.Object, f.File, f.Line, f.Path = u.Doc.Object(), u.Doc.File, u.Doc.Line, u.Path
		f.Why = fmt.Sprintf("StorageClass %s of the cluster: %s", u.Class, f.Why)
		found = append(found, f)
	}
	return found, nil
}

// severityOf is an error where a server of the stream has its data there; else it is a warning to whoever will.
func severityOf(used bool) Severity {
	if used {
		return SeverityError
	}
	return SeverityWarning
}

// volumeOptions looks at the mount options and the parameters of volumes, at their paths.
func (c *checker) volumeOptions(d stream.Document, s Severity, options, parameters string) {
	var list []string
	if options != "" {
		reread(d.Get(options), &list)
	}
	for i, o := range list {
		c.dropped(d, s, fmt.Sprintf("%s[%d]", options, i), "", splitOptions(o))
	}
	values, _ := d.Get(parameters).(map[string]any)
	for _, key := range sortedKeys(values) {
		c.parameter(d, s, stream.Step(parameters, key), key, fmt.Sprint(values[key]))
	}
}

// splitOptions reads mount options as mount(8) does, an -o of a driver's text before them too.
func splitOptions(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// parameter looks at one parameter of a driver: an option of a mount or of a dataset by its name, a list of options, or
// a filesystem.
func (c *checker) parameter(d stream.Document, s Severity, at, key, value string) {
	name := strings.ToLower(key[strings.LastIndexAny(key, "/.:")+1:])
	switch name {
	case "fstype":
		c.dropped(d, s, at, strings.ToLower(value), nil)
	case "mountoptions", "mountflags", "mapoptions", "options", "datasetproperties":
		c.dropped(d, s, at, "", splitOptions(value))
	case "cache", "cachemode":
		if strings.EqualFold(value, "unsafe") { // qemu(1), -drive cache=unsafe
			c.report(s, "flushes-left-out", d, at, fmt.Sprintf("%s=%s: the hypervisor ignores the server's flushes, so what its host holds is lost when that stops", key, value), "use none, directsync or writethrough")
		}
	default:
		c.dropped(d, s, at, "", []string{name + "=" + value})
	}
}

// dropped reports what a filesystem does to flushes under its options.
func (c *checker) dropped(d stream.Document, s Severity, at, kind string, options []string) {
	for _, u := range host.DroppedBy(kind, options) {
		severity := s
		if !u.Sure {
			severity = SeverityWarning
		}
		c.report(severity, "flushes-left-out", d, at, u.Why, "remove it: the durability lock holds nothing over a volume that does not flush")
	}
}

// persistentVolume looks at a volume that was made by hand.
func (c *checker) persistentVolume(d stream.Document, s Severity) {
	c.volumeOptions(d, s, "spec.mountOptions", "spec.csi.volumeAttributes")
	c.dropped(d, s, "metadata.annotations", "", splitOptions(stream.Text(d.Get(`metadata.annotations["volume.beta.kubernetes.io/mount-options"]`))))
	for _, at := range []string{"spec.csi.fsType", "spec.local.fsType"} {
		c.dropped(d, s, at, strings.ToLower(stream.Text(d.Get(at))), nil)
	}
	for _, at := range []string{"spec.hostPath.path", "spec.local.path"} {
		c.memoryFolder(d, s, at, stream.Text(d.Get(at)))
	}
}

// memoryFolder reports a folder that is in memory on every usual node.
func (c *checker) memoryFolder(d stream.Document, s Severity, at, folder string) {
	clean := path.Clean(folder)
	for _, of := range []string{"/dev/shm", "/run", "/var/run"} {
		if clean == of || strings.HasPrefix(clean, of+"/") {
			c.report(s, "flushes-left-out", d, at, folder+" is memory of the node (tmpfs): all of it is lost when the node stops", "use a folder on a disk")
		}
	}
}

// podFlushes looks at a pod's volumes, and at what its containers' commands and variables switch off.
func (c *checker) podFlushes(p pod) {
	at, isServer := serverContainer(p)
	if isServer {
		p.container = at
		c.dataVolumes(p)
	}
	for _, part := range []struct {
		name string
		list []corev1.Container
	}{{"containers", p.spec.Containers}, {"initContainers", p.spec.InitContainers}} {
		for i, container := range part.list {
			where := p.at(fmt.Sprintf("%s[%d]", part.name, i))
			if call, why := switchedOff(commandLines(container)); why != "" {
				c.report(severityOf(isServer), "flushes-left-out", p.doc, where+".command", fmt.Sprintf("%.80q: %s", call, why), "take the command out")
			}
			c.statements(p.doc, where+".command", commandLines(container))
			for j, e := range container.Env {
				if strings.HasPrefix(e.Name, "LD_PRELOAD") && slices.ContainsFunc(strings.FieldsFunc(e.Value, func(r rune) bool { return r == ':' || r == ' ' }), host.DropsFsync) {
					c.report(severityOf(isServer), "flushes-left-out", p.doc, fmt.Sprintf("%s.env[%d]", where, j), e.Value+" makes fsync do nothing in whatever the container runs", "take the variable out")
				}
			}
		}
	}
}

// dataVolumes looks at the volumes of a server's own pod that are no claims; of an emptyDir the rule of volumes tells.
func (c *checker) dataVolumes(p pod) {
	for _, m := range p.server().VolumeMounts {
		i := slices.IndexFunc(p.spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if i < 0 || !holdsAny(m, dataFolders()) {
			continue
		}
		v, at := p.spec.Volumes[i], p.at(fmt.Sprintf("volumes[%d]", i))
		if v.HostPath != nil {
			c.memoryFolder(p.doc, SeverityError, at+".hostPath.path", v.HostPath.Path)
		}
		if v.CSI != nil {
			c.volumeOptions(p.doc, SeverityError, "", at+".csi.volumeAttributes")
		}
	}
}

// switchedOff finds the call by which a command, or a script, switches off flushes on its node, and says what that
// does; "" where it leaves all as it was.
func switchedOff(text string) (call, why string) {
	text = strings.ReplaceAll(text, "\\\n", " ") // a line that goes on
	for _, call := range slices.Concat(lineCall.FindAllString(text, -1), listCall.FindAllString(text, -1)) {
		if dropped := host.DroppedBy("", callWords(call)); len(dropped) > 0 {
			return call, dropped[0].Why
		}
	}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n:=;&|()\"'[],", r) }) {
		if host.DropsFsync(word) {
			return word, "it makes fsync do nothing in whatever runs under it"
		}
	}
	for _, set := range []struct {
		pattern *regexp.Regexp
		why     string
	}{
		{cacheOff, "it tells the kernel that a disk has no volatile cache: no flush is sent"},
		{moduleOff, "it has ZFS send no flush to the disks of any pool"},
	} {
		if found := set.pattern.FindString(text); found != "" {
			return found, set.why
		}
	}
	return "", ""
}

// callWords splits the options out of a call of mount, zfs or zpool.
func callWords(call string) []string {
	words := strings.FieldsFunc(call, func(r rune) bool { return strings.ContainsRune(" \t\n,\"'[]", r) })
	for i, w := range words {
		words[i] = strings.TrimPrefix(w, "-o")
		if _, options, long := strings.Cut(w, "="); long && strings.HasPrefix(w, "--") {
			words[i] = options
		}
	}
	return words
}

var (
	// What sets how a filesystem flushes, in a line of a shell, and as a list of words, each in its line.
	lineCall = regexp.MustCompile(`(?i)\b(?:zfs|zpool|mount)\b[^#;&|\n]*`)
	listCall = regexp.MustCompile(`(?i)\b(?:zfs|zpool|mount)(?:\n[^\n]{0,80}){1,12}`)

	cacheOff  = regexp.MustCompile(`(?i)write.?through[^\n]{0,200}/queue/write_cache`)
	moduleOff = regexp.MustCompile(`(?i)\bz(?:fs|il)_nocacheflush\s{0,20}=\s{0,20}1|\b1\b[^\n]{0,200}/z(?:fs|il)_nocacheflush`)
)
