package check

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"david/internal/mycnf"
)

// besides matches words in the names of images that belong to a database and are no server: consoles such as
// phpMyAdmin and Adminer among them, and the servers of others that are packed by the same people.
var besides = regexp.MustCompile(`exporter|router|operator|backup|shell|client|proxy|toolkit|tuner|dump|admin|maxscale|orchestrator|mongodb|postgres`)

// plainServer matches the names of images that are servers, whatever else the container says: mysql,
// mariadb-galera, percona-server, mysql-80-c9s.
var plainServer = regexp.MustCompile(`^(?:e2e-)?(?:mysql|mariadb|percona)(?:-(?:community|enterprise))?(?:-(?:server|cluster|galera|xtradb-cluster))?(?:-(?:mysql|mariadb))?(?:-?\d[\w.-]*)?$|^(?:community|enterprise)-server$`)

// daemon matches a server's program at the beginning of an argument or of a shell's command.
var daemon = regexp.MustCompile(`(?m)(?:^\s*|[;&|]\s*|\bexec\s+|/)(?:mysqld|mariadbd|mysqld_safe|mariadbd-safe)(?:[\s;]|$)`)

// programs lists names of clients' programs.
const programs = `(?:mysql|mysqldump|mysqlpump|mysqladmin|mysqlsh|mysqlimport|mysqlcheck|mysqlbinlog|mysqlslap|mysqlshow|mysqlbackup|mariadb|mariadb-\w+|mariabackup|xtrabackup|mydumper|myloader|sysbench)`

var clientProgram = regexp.MustCompile(`^` + programs + `$`)

// serverContainer finds the container that is the database server, by what tells it most surely: the server's
// program in its command, a server's image with its data mounted or a root password, or any image with a root
// password and a server's port or data; then the image's name alone, or one that resembles it with the port,
// the variables, or the option files of a server. A container that runs a client is none.
func serverContainer(p pod) (at int, ok bool) {
	for _, is := range []func(pod, corev1.Container) bool{surelyServer, likelyServer} {
		if at := slices.IndexFunc(p.spec.Containers, func(c corev1.Container) bool { return !runsClient(c) && is(p, c) }); at >= 0 {
			return at, true
		}
	}
	return 0, false
}

// commandLines lists a container's command and arguments, one a line.
func commandLines(c corev1.Container) string {
	return strings.Join(slices.Concat(c.Command, c.Args), "\n")
}

// runsClient tells whether the container's program is a client's, or waits for somebody who will start one.
func runsClient(c corev1.Container) bool {
	all := slices.DeleteFunc(slices.Concat(c.Command, c.Args), func(s string) bool { return path.Base(s) == "docker-entrypoint.sh" })
	return len(all) > 0 && (clientProgram.MatchString(path.Base(all[0])) || idle.MatchString(strings.Join(all, " ")))
}

// idle matches a command that does nothing for as long as it is left alone.
var idle = regexp.MustCompile(`^(?:\S*/)?(?:(?:ba|da)?sh\s+-\w*c\s+)?(?:exec\s+)?(?:sleep\s+\w+|tail\s+-f\s+/dev/null)\s*$`)

// serverAddress matches variables that say where another server is: to phpMyAdmin, to an application, to a
// script.
var serverAddress = regexp.MustCompile(`(?i)^(?:\w+_)?(?:PMA|DB|DATABASE|MYSQL|MARIADB|DATASOURCE)_?(?:HOSTS?|HOSTNAME|ADDR|ADDRESS|SERVERS?|SERVICE|URL|URI|DSN)$|^ADMINER_DEFAULT_SERVER$|^DATA_SOURCE_NAME$`)

// asksServer tells whether a container whose image is not surely a server's is a client of one: it has other
// ports, or is told an address. Such are given the root's password and the database's name as servers are.
func asksServer(c corev1.Container) bool {
	if plainServer.MatchString(imageBase(c.Image)) {
		return false
	}
	elsewhere := len(c.Ports) > 0 && !slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool { return port.ContainerPort == 3306 })
	return elsewhere || slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return serverAddress.MatchString(e.Name) })
}

// surelyServer tells whether a container says by more than its image that it is a server.
func surelyServer(p pod, c corev1.Container) bool {
	_, _, known := serverImage(c.Image)
	switch {
	case besides.MatchString(imageBase(c.Image)):
		return false
	case daemon.MatchString(commandLines(c)):
		return true
	case runsOnce(p) && commandLines(c) != "" && !onlyOptions(c): // a script of a Job may have the root's password to use it
		return false
	case asksServer(c):
		return false
	}
	holds := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return holdsAny(m, dataFolders()) })
	listens := slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool { return port.ContainerPort == 3306 })
	return known && holds || (known || holds || listens) && slices.ContainsFunc(c.Env, isServerEnv)
}

// likelyServer tells whether a container that runs its image's own program is a server by the image's name.
func likelyServer(_ pod, c corev1.Container) bool {
	_, _, known := serverImage(c.Image)
	if !known || asksServer(c) || commandLines(c) != "" && !onlyOptions(c) {
		return false
	}
	return plainServer.MatchString(imageBase(c.Image)) || len(c.EnvFrom) > 0 ||
		slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool { return port.ContainerPort == 3306 }) ||
		slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return serverVariable.MatchString(e.Name) }) ||
		slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
			return strings.HasPrefix(m.MountPath, "/etc/mysql") || strings.HasPrefix(m.MountPath, "/etc/my.cnf")
		})
}

// serverVariable matches variables by which images make a server's first database and account.
var serverVariable = regexp.MustCompile(`^(?:MYSQL|MARIADB)_(?:DATABASE|USER|PASSWORD|ROOT_HOST|INITDB_\w+|AUTO_UPGRADE|REPLICATION_\w+)$`)

// imageBase takes the last element of an image's name, without tag and digest.
func imageBase(image string) string {
	if m := imageName.FindStringSubmatch(image); m != nil {
		return strings.ToLower(m[1])
	}
	return ""
}

// runsOnce tells whether the pod is one that ends.
func runsOnce(p pod) bool { return p.doc.Kind() == "Job" || p.doc.Kind() == "CronJob" }

// onlyOptions tells whether a container has no command of its own, and gives the image's at most options.
func onlyOptions(c corev1.Container) bool {
	return len(c.Command) == 0 && (len(c.Args) == 0 || strings.HasPrefix(c.Args[0], "-"))
}

// arguments reads the settings in a server's command line. They win over all files.
func arguments(p pod, flavour mycnf.Flavour, v mycnf.Version) (files []optionFile) {
	for _, part := range []struct {
		path string
		list []string
	}{{p.in("command"), p.server().Command}, {p.in("args"), p.server().Args}} {
		f := optionFile{doc: p.doc, path: part.path, lines: map[string]int{}}
		words := wordsOf(part.list)
		for len(words) > 0 {
			at := words[0].at
			name, isOption := strings.CutPrefix(words[0].text, "--")
			words = words[1:]
			if !isOption || name == "" {
				continue
			}
			name, value, given := strings.Cut(name, "=")
			if !given && len(words) > 0 && takesNext(flavour, v, name, words[0].text) {
				value, words = words[0].text, words[1:]
			}
			o := mycnf.Resolve(flavour, v, name, strings.Trim(value, `"'`), !given && value == "")
			if !o.Ignored {
				f.settings = append(f.settings, mycnf.Setting{Name: o.Name, Value: o.Value})
			}
			f.lines[mycnf.WithoutLoose(o.Name)] = p.doc.LineAt(fmt.Sprintf("%s[%d]", part.path, at))
		}
		if len(f.settings) > 0 {
			files = append(files, f)
		}
	}
	return files
}

// word is one of a command line, and the element of the list that it stands in.
type word struct {
	text string
	at   int
}

// wordsOf splits a shell's script; anything else is one word.
func wordsOf(list []string) (words []word) {
	for i, text := range list {
		parts := []string{text}
		if daemon.MatchString(text) {
			parts = strings.Fields(text)
		}
		for _, part := range parts {
			words = append(words, word{part, i})
		}
	}
	return words
}

// takesNext tells whether an option that stands alone has the next word for its value: one that cannot do
// without takes whatever comes, another option too; of others only what is none.
func takesNext(f mycnf.Flavour, v mycnf.Version, name, next string) bool {
	if strings.ContainsAny(next, "&|;") {
		return false
	}
	o := mycnf.Resolve(f, v, name, "", true)
	_, refused := o.Refused()
	return refused && !o.Absent || !strings.ContainsRune(next, '-')
}

// dataFolders lists where servers' images keep their data.
func dataFolders() []string { return []string{"/var/lib/mysql", "/bitnami/mysql", "/bitnami/mariadb"} }

// data tells where this server keeps its data: a datadir that is set, or where the images do.
func (s server) data() []string {
	if folder, _, ok := s.setting("datadir"); ok && path.IsAbs(folder) {
		return []string{path.Clean(folder)}
	}
	return dataFolders()
}

// holdsAny tells whether a mount is one of the folders, above it, or in it.
func holdsAny(m corev1.VolumeMount, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		at := path.Clean(m.MountPath)
		return at == "/" || at == folder || strings.HasPrefix(folder, at+"/") || strings.HasPrefix(at, folder+"/")
	})
}

// holdsAll tells whether a mount is one of the folders, or above it.
func holdsAll(m corev1.VolumeMount, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		at := path.Clean(m.MountPath)
		return at == "/" || at == folder || strings.HasPrefix(folder, at+"/")
	})
}

// replicating matches what scripts say that make servers replicate.
var replicating = regexp.MustCompile(`(?i)\b(?:change\s+(?:master|replication\s+source)\s+to|start\s+(?:slave|replica|group_replication)|wsrep_cluster_address|group_replication_group_name)\b|gcomm://`)

// replicatingVariable matches variables by which images make servers replicate.
var replicatingVariable = regexp.MustCompile(`^(?:MYSQL|MARIADB)_(?:REPLICATION|GALERA|MASTER|PRIMARY)_\w+$|^CLUSTER_JOIN$`)

// replicates tells whether something in a pod makes its server replicate: a script of it, of another
// container as in Kubernetes' tutorial "Run a Replicated Stateful Application", or in a ConfigMap or a
// Secret; or variables.
func (c *checker) replicates(p pod) bool {
	for _, container := range slices.Concat(p.spec.Containers, p.spec.InitContainers) {
		if replicating.MatchString(commandLines(container)) || slices.ContainsFunc(container.Env, func(e corev1.EnvVar) bool { return replicatingVariable.MatchString(e.Name) }) {
			return true
		}
	}
	for _, v := range p.spec.Volumes {
		found, _ := c.shown(p.doc.Namespace(), v, corev1.VolumeMount{})
		for _, e := range found {
			if replicating.MatchString(e.text) {
				return true
			}
		}
	}
	return false
}
