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
	used := c.usedClasses()
	for _, d := range c.docs {
		switch d.Kind() {
		case "StorageClass":
			c.volumeOptions(d, severityOf(used[d.Name()]), "mountOptions", "parameters", "")
		case "VolumeAttributesClass":
			c.volumeOptions(d, SeverityWarning, "", "parameters", "")
		case "PersistentVolume":
			c.persistentVolume(d, severityOf(used[stream.Text(d.Get("spec.storageClassName"))]))
		case "ConfigMap", "Secret":
			c.texts(d)
		}
		if p, ok := podOf(d); ok {
			c.podFlushes(p)
		}
	}
}

// Flushes finds what of a storage class that a cluster has leaves out flushes of the server that uses it.
func (u ClassUse) Flushes(class *storagev1.StorageClass) (found []Finding) {
	own := class.DeepCopy()
	own.APIVersion, own.Kind = "storage.k8s.io/v1", "StorageClass" // which a client leaves out
	text, err := json.Marshal(own)
	docs, _ := stream.Documents(u.Class, text)
	if err != nil || len(docs) != 1 {
		return nil
	}
	c := checker{}
	c.volumeOptions(docs[0], SeverityError, "mountOptions", "parameters", "")
	for _, f := range c.found {
		f.Object, f.File, f.Line, f.Path = u.Doc.Object(), u.Doc.File, u.Doc.Line, u.Path
		f.Why = fmt.Sprintf("StorageClass %s of the cluster: %s", u.Class, f.Why)
		found = append(found, f)
	}
	return found
}

// severityOf is an error where a server of the stream has its data there; else it is a warning to whoever will.
func severityOf(used bool) Severity {
	if used {
		return SeverityError
	}
	return SeverityWarning
}

// usedClasses names the storage classes of the servers' volumes.
func (c *checker) usedClasses() map[string]bool {
	used := map[string]bool{}
	for _, d := range c.docs {
		if s, ok := (&checker{docs: c.docs, unseen: map[string]bool{}}).server(d); ok && s.class != "" {
			used[s.class] = true
		}
	}
	return used
}

// volumeOptions looks at the mount options, the parameters and the filesystem of volumes, at their paths.
func (c *checker) volumeOptions(d stream.Document, s Severity, options, parameters, kind string) {
	var list []string
	if options != "" {
		reread(d.Get(options), &list)
	}
	for i, o := range list {
		c.dropped(d, s, fmt.Sprintf("%s[%d]", options, i), kind, splitOptions(o))
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
	c.volumeOptions(d, s, "spec.mountOptions", "spec.csi.volumeAttributes", "")
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
			if why := switchedOff(commandLines(container)); why != "" {
				c.report(severityOf(isServer), "flushes-left-out", p.doc, where+".command", why, "take the command out")
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
			c.volumeOptions(p.doc, SeverityError, "", at+".csi.volumeAttributes", "")
		}
	}
}

// switchedOff tells what of flushing a command, or a script, switches off on its node; "" where it leaves all as it was.
func switchedOff(text string) string {
	for _, command := range []struct {
		pattern *regexp.Regexp
		why     string
	}{
		{zfsOff, "it sets a ZFS property by which fsync returns before the data are on the disk, or commits bypass the log device"},
		{mountOff, "it mounts a filesystem so that no flush reaches the device"},
		{cacheOff, "it tells the kernel that a disk has no volatile cache: no flush is sent"},
		{moduleOff, "it has ZFS send no flush to the disks of any pool"},
		{preloadOff, "it runs a server under a library that makes fsync do nothing"},
	} {
		if found := command.pattern.FindString(text); found != "" {
			return fmt.Sprintf("%.80q: %s", found, command.why)
		}
	}
	return ""
}

var (
	zfsOff     = regexp.MustCompile(`(?i)\b(?:zfs|zpool)[\s,"'\]\[]+[^#;&|\n]*\b(?:sync=disabled|logbias=throughput)|\b(?:zfs|zpool)\n(?:[^\n]*\n){1,12}?(?:sync=disabled|logbias=throughput)`)
	mountOff   = regexp.MustCompile(`(?i)\bmount\b[^#;&|]*\b(?:nobarrier|barriers?=(?:0|none|off)|fsync_mode=nobarrier|volatile)\b`)
	cacheOff   = regexp.MustCompile(`(?i)write.?through[^\n]*/queue/write_cache`)
	moduleOff  = regexp.MustCompile(`(?i)\bz(?:fs|il)_nocacheflush\s*=\s*1|\b1\b[^\n]*/z(?:fs|il)_nocacheflush`)
	preloadOff = regexp.MustCompile(`\beatmydata\b|LD_PRELOAD=\S*(?:libeatmydata|nosync\.so|nofsync\.so)`)
)
