package manifest

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"david/internal/mycnf"
)

// server is a database server found in the objects, in a pod of a built-in kind or in an operator's resource.
type server struct {
	doc      Document
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
}

// optionFile is a my.cnf, or what takes its place.
type optionFile struct {
	doc      Document
	path     string
	settings []mycnf.Setting
	lines    map[string]int // of the settings, in the document's file
}

// setting is the value of a variable and the file that sets it last.
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

// lines are all settings, with the names that the memory rule knows.
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

// pod is a pod template of a workload.
type pod struct {
	doc       Document
	path      string // of the pod's spec
	spec      corev1.PodSpec
	labels    map[string]string
	replicas  int
	claims    []corev1.PersistentVolumeClaim
	container int // the server's, of spec.Containers
}

// at is a path in the pod's spec.
func (p pod) at(path string) string { return p.path + "." + path }

// in is a path in the server's container.
func (p pod) in(path string) string {
	return fmt.Sprintf("%s.containers[%d].%s", p.path, p.container, path)
}

func (p pod) server() corev1.Container { return p.spec.Containers[p.container] }

// own are the requests and limits of the pod as a whole; nil where it has none, or the cluster is older than Kubernetes 1.34 and knows none.
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
		for _, rule := range []func(server){c.memory, c.dedicated, c.durability, c.settings, c.pageSize, c.lonely, c.storageClass} {
			rule(s)
		}
		if s.pod == nil {
			c.equalResources(s)
			continue
		}
		for _, rule := range []func(server, pod){c.qos, c.startup, c.liveness, c.reached, c.stop, c.privileges, c.volumes} {
			rule(s, *s.pod)
		}
	}
}

// server finds the database server of an object.
func (c *checker) server(d Document) (server, bool) {
	if p, ok := podOf(d); ok {
		return c.podServer(p)
	}
	view, ok := viewOf(d)
	if !ok {
		return server{}, false
	}
	return c.operated(d, view), true
}

// viewOf is the view of an operator's resource; ok is false for other objects.
func viewOf(d Document) (view operatorView, ok bool) {
	for _, view := range operatorViews() {
		if strings.HasPrefix(d.APIVersion(), view.group+"/") && d.Kind() == view.kind {
			return view, true
		}
	}
	return view, false
}

// podPaths are where pod templates stand, by kind.
func podPaths() map[string]string {
	return map[string]string{"Pod": "spec", "StatefulSet": "spec.template.spec", "Deployment": "spec.template.spec", "DaemonSet": "spec.template.spec",
		"ReplicaSet": "spec.template.spec", "Job": "spec.template.spec", "CronJob": "spec.jobTemplate.spec.template.spec"}
}

// podOf is the pod template of an object; ok is false where it has none that can be read.
func podOf(d Document) (p pod, ok bool) {
	p = pod{doc: d, path: podPaths()[d.Kind()], replicas: 1}
	if p.path == "" || !reread(d.get(p.path), &p.spec) {
		return p, false
	}
	if meta := strings.TrimSuffix(p.path, "spec") + "metadata.labels"; !reread(d.get(meta), &p.labels) {
		p.labels = nil
	}
	if n, err := asInt(d.get("spec.replicas")); err == nil {
		p.replicas = n
	}
	if !reread(d.get("spec.volumeClaimTemplates"), &p.claims) {
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

// asInt is a value that is a whole number.
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
	return f, longTerm(f), true
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
		f, v = mycnf.MySQL, longTerm(mycnf.MySQL)
	}
	p.container = at
	s := server{doc: p.doc, flavour: f, version: v, replicas: p.replicas, replicated: c.replicates(p), resources: p.in("resources"), pod: &p,
		memory: container.Resources.Limits.Memory().Value(), cnfs: append(c.mounted(p), arguments(p)...)}
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
			s.class = asText(claim.get("spec.storageClassName"))
			s.classPath = s.pod.at(fmt.Sprintf("volumes[%d].persistentVolumeClaim", i))
		}
	}
}

// mounted are the option files that the server's container mounts from ConfigMaps of the stream, in the order the server reads a folder.
func (c *checker) mounted(p pod) (files []optionFile) {
	for _, mount := range p.server().VolumeMounts {
		i := slices.IndexFunc(p.spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if i < 0 || p.spec.Volumes[i].ConfigMap == nil {
			continue
		}
		name := p.spec.Volumes[i].ConfigMap.Name
		config, ok := c.find("ConfigMap", p.doc.Namespace(), name)
		if !ok {
			c.unseen[fmt.Sprintf("the my.cnf of %s: ConfigMap %s is not in the stream", p.doc.Object(), name)] = true
			continue
		}
		files = append(files, c.configFiles(p, config, p.spec.Volumes[i].ConfigMap.Items, mount)...)
	}
	return files
}

// configFiles are the option files of a ConfigMap that a mount shows the server.
func (c *checker) configFiles(p pod, config Document, items []corev1.KeyToPath, mount corev1.VolumeMount) (files []optionFile) {
	data, _ := config.Value["data"].(map[string]any)
	f, v, _ := serverImage(p.server().Image)
	for _, key := range sortedKeys(data) {
		shown, ok := shownAt(key, items, mount)
		ext, text := path.Ext(shown), asText(data[key])
		switch {
		case !ok:
		case ext != ".cnf" && slices.Contains(includedFolders(), path.Dir(shown)):
			c.unread(p, config, key, shown, text)
		case ext == ".cnf" || ext == ".ini":
			files = append(files, c.parsed(config, step("data", key), text, f, v))
		}
	}
	return files
}

// shownAt is the path at which a mount shows a key of a ConfigMap; ok is false where it shows others only.
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

// parsed reads the text of an option file.
func (c *checker) parsed(d Document, path, text string, f mycnf.Flavour, v mycnf.Version) optionFile {
	file, err := mycnf.Parse(strings.NewReader(text), path)
	if err != nil {
		c.report(SeverityError, "my-cnf", d, path, err.Error(), "correct it: the server does not start with it")
		return optionFile{doc: d, path: path}
	}
	o := optionFile{doc: d, path: path, settings: file.Settings(mycnf.ServerGroups(f, v)...), lines: map[string]int{}}
	for _, item := range file.Items {
		line := 0
		if at := d.at(path); at != nil && d.literal(path) {
			line = at.Line + item.Line
			o.lines[mycnf.WithoutLoose(item.Name)] = line
		}
		c.misplaced(o, item, line)
	}
	return o
}

// literal tells whether a text stands line by line below its key.
func (d Document) literal(path string) bool {
	steps, err := split(path)
	if err != nil {
		return false
	}
	n := d.node
	for _, s := range steps {
		if n == nil {
			return false
		}
		_, n = child(n, s)
	}
	return n != nil && n.Style&yaml.LiteralStyle != 0
}

func sortedKeys(m map[string]any) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// operatorView says where an operator's resource keeps what the rules look at.
type operatorView struct {
	group, kind string
	flavour     mycnf.Flavour
	version     mycnf.Version // where the image tells none
	image       string        // paths, from here on
	cnf         string        // of the my.cnf's text
	replicas    string
	resources   string
	class       string
	replication func(Document) bool
	budget      string
}

// operatorViews are the resources that david renders.
func operatorViews() []operatorView {
	always := func(Document) bool { return true }
	eight := longTerm(mycnf.MySQL)
	return []operatorView{
		{group: "pxc.percona.com", kind: "PerconaXtraDBCluster", flavour: mycnf.Percona, version: eight, image: "spec.pxc.image", cnf: "spec.pxc.configuration", replicas: "spec.pxc.size",
			resources: "spec.pxc.resources", class: "spec.pxc.volumeSpec.persistentVolumeClaim.storageClassName", replication: always, budget: "spec.pxc.podDisruptionBudget"},
		{group: "ps.percona.com", kind: "PerconaServerMySQL", flavour: mycnf.Percona, version: eight, image: "spec.mysql.image", cnf: "spec.mysql.configuration", replicas: "spec.mysql.size",
			resources: "spec.mysql.resources", class: "spec.mysql.volumeSpec.persistentVolumeClaim.storageClassName", replication: always, budget: "spec.mysql.podDisruptionBudget"},
		{group: "mysql.oracle.com", kind: "InnoDBCluster", flavour: mycnf.MySQL, version: eight, cnf: "spec.mycnf", replicas: "spec.instances", resources: "spec.podSpec.containers[0].resources",
			class: "spec.datadirVolumeClaimTemplate.storageClassName", replication: always},
		{group: "apps.kubeblocks.io", kind: "Cluster", flavour: mycnf.MySQL, version: eight, replicas: "spec.componentSpecs[0].replicas", resources: "spec.componentSpecs[0].resources",
			class: "spec.componentSpecs[0].volumeClaimTemplates[0].spec.storageClassName", replication: always},
		{group: "moco.cybozu.com", kind: "MySQLCluster", flavour: mycnf.MySQL, version: eight, image: "spec.podTemplate.spec.containers[0].image", replicas: "spec.replicas",
			resources: "spec.podTemplate.spec.containers[0].resources", class: "spec.volumeClaimTemplates[0].spec.storageClassName", replication: always},
		{group: "k8s.mariadb.com", kind: "MariaDB", flavour: mycnf.MariaDB, version: longTerm(mycnf.MariaDB), image: "spec.image", cnf: "spec.myCnf", replicas: "spec.replicas",
			resources: "spec.resources", class: "spec.storage.volumeClaimTemplate.storageClassName", budget: "spec.podDisruptionBudget",
			replication: func(d Document) bool {
				return d.get("spec.galera.enabled") == true || d.get("spec.replication.enabled") == true
			}},
	}
}

// operated is the server of an operator's resource.
func (c *checker) operated(d Document, view operatorView) server {
	s := server{doc: d, flavour: view.flavour, version: view.version, replicas: 1, replicated: view.replication(d), resources: view.resources, classPath: view.class}
	if f, v, ok := serverImage(asText(d.get(view.image))); ok && f == view.flavour {
		s.version = v
	}
	if n, err := asInt(d.get(view.replicas)); err == nil {
		s.replicas = n
	}
	s.memory, _ = bytesAt(d, view.resources+".limits.memory")
	s.class = asText(d.get(view.class))
	switch {
	case view.cnf != "":
		if text := asText(d.get(view.cnf)); text != "" {
			s.cnfs = []optionFile{c.parsed(d, view.cnf, text, s.flavour, s.version)}
		}
	case d.Kind() == "MySQLCluster":
		name := asText(d.get("spec.mysqlConfigMapName"))
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
func keyed(d Document, path string) optionFile {
	f := optionFile{doc: d, path: path}
	f.lines = map[string]int{}
	data, _ := d.get(path).(map[string]any)
	for _, key := range sortedKeys(data) {
		f.lines[mycnf.WithoutLoose(key)] = d.at(step(path, key)).Line
		f.settings = append(f.settings, mycnf.Setting{Name: mycnf.Normalise(key), Value: asText(data[key])})
	}
	return f
}

// parameters are the settings of a Cluster of KubeBlocks.
func (c *checker) parameters(cluster Document) (files []optionFile) {
	for _, d := range c.docs {
		if d.Kind() != "Parameter" || asText(d.get("spec.clusterName")) != cluster.Name() {
			continue
		}
		components, _ := d.get("spec.componentParameters").([]any)
		for i := range components {
			files = append(files, keyed(d, fmt.Sprintf("spec.componentParameters[%d].parameters", i)))
		}
	}
	return files
}

// bytesAt is a quantity of an object in bytes; ok is false where there is none.
func bytesAt(d Document, path string) (int64, bool) {
	q, err := resource.ParseQuantity(fmt.Sprint(d.get(path)))
	if err != nil {
		return 0, false
	}
	return q.Value(), true
}
