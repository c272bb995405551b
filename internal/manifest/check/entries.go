package check

import (
	"encoding/base64"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"david/internal/manifest/stream"
)

// entry holds a text of a ConfigMap or a Secret.
type entry struct {
	doc   stream.Document
	path  string // within it
	key   string
	text  string
	coded bool // it stands there in base64
}

// entries lists the texts of a ConfigMap or a Secret. What a Secret has as stringData replaces what it has as
// data.
func entries(d stream.Document) (list []entry) {
	for _, field := range []string{"binaryData", "data", "stringData"} {
		values, _ := d.Value[field].(map[string]any)
		for _, key := range sortedKeys(values) {
			e := entry{doc: d, path: stream.Step(field, key), key: key, text: stream.Text(values[key])}
			e.coded = field == "binaryData" || field == "data" && d.Kind() == "Secret"
			if e.coded {
				plain, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(e.text), ""))
				if err != nil {
					continue // the API server refuses it
				}
				e.text = string(plain)
			}
			list = append(list, e)
		}
	}
	return list
}

// origin names a ConfigMap or a Secret of which a volume shows some keys, or all where it names none.
type origin struct {
	kind, name string
	items      []corev1.KeyToPath
}

// origins lists what a volume shows, the later over the earlier.
func origins(v corev1.Volume) (list []origin) {
	if s := v.ConfigMap; s != nil {
		list = append(list, origin{"ConfigMap", s.Name, s.Items})
	}
	if s := v.Secret; s != nil {
		list = append(list, origin{"Secret", s.SecretName, s.Items})
	}
	if v.Projected == nil {
		return list
	}
	for _, p := range v.Projected.Sources {
		if s := p.ConfigMap; s != nil {
			list = append(list, origin{"ConfigMap", s.Name, s.Items})
		}
		if s := p.Secret; s != nil {
			list = append(list, origin{"Secret", s.Name, s.Items})
		}
	}
	return list
}

// forServer tells whether a mount of it is likely to show option files: most Secrets hold keys and passwords.
func (o origin) forServer(mount corev1.VolumeMount) bool {
	return o.kind == "ConfigMap" || path.Ext(mount.MountPath) == ".cnf" || slices.Contains(includedFolders(), path.Clean(mount.MountPath)) ||
		slices.ContainsFunc(o.items, func(item corev1.KeyToPath) bool { return path.Ext(item.Path) == ".cnf" })
}

// shown finds what a mount of a volume shows, by path. missing lists what the stream does not hold.
func (c *checker) shown(namespace string, v corev1.Volume, mount corev1.VolumeMount) (found map[string]entry, missing []origin) {
	found = map[string]entry{}
	for _, o := range origins(v) {
		d, ok := c.find(o.kind, namespace, o.name)
		if !ok {
			missing = append(missing, o)
			continue
		}
		for _, e := range entries(d) {
			if at, ok := shownAt(e.key, o.items, mount); ok {
				found[at] = e
			}
		}
	}
	return found, missing
}

// mounted lists the option files that the server's container mounts from ConfigMaps and Secrets of the
// stream, in the order in which the server reads a folder.
func (c *checker) mounted(p pod) (files []optionFile) {
	f, v, _ := serverImage(p.server().Image)
	for _, mount := range p.server().VolumeMounts {
		i := slices.IndexFunc(p.spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if i < 0 {
			continue
		}
		found, missing := c.shown(p.doc.Namespace(), p.spec.Volumes[i], mount)
		for _, o := range missing {
			if o.forServer(mount) {
				c.unseen["the my.cnf of "+p.doc.Object()+": "+o.kind+" "+o.name+" is not in the stream"] = true
			}
		}
		for _, at := range slices.Sorted(maps.Keys(found)) {
			switch ext := path.Ext(at); {
			case ext != ".cnf" && slices.Contains(includedFolders(), path.Dir(at)):
				c.unread(p, found[at], at)
			case ext == ".cnf" || ext == ".ini":
				files = append(files, c.parsed(found[at], f, v))
			}
		}
	}
	return files
}

// shownAt finds the path at which a mount shows a key; ok is false where it shows others only.
func shownAt(key string, items []corev1.KeyToPath, mount corev1.VolumeMount) (shown string, ok bool) {
	name := key
	if len(items) > 0 {
		i := slices.IndexFunc(items, func(item corev1.KeyToPath) bool { return item.Key == key })
		if i < 0 {
			return "", false
		}
		name = items[i].Path
	}
	if mount.SubPath == "" {
		return path.Join(mount.MountPath, name), true
	}
	below, inside := strings.CutPrefix(path.Clean(name), path.Clean(mount.SubPath))
	return path.Join(mount.MountPath, below), inside && (below == "" || below[0] == '/')
}
