package advice_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"david/internal/advice"
	"david/internal/explain"
	"david/internal/host"
	"david/internal/manifest"
	"david/internal/manifest/check"
	"david/internal/manifest/render"
	"david/internal/manifest/stream"
	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
)

// configuration is an option file for a server.
type configuration struct {
	name     string
	flavour  mycnf.Flavour
	version  mycnf.Version
	settings []mycnf.Setting
}

// configurations are option files of packages, operators' and services' defaults, and files made to be bad.
func configurations(t *testing.T) (list []configuration) {
	t.Helper()
	files, err := filepath.Glob("testdata/configs/*.cnf")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := mycnf.Parse(strings.NewReader(string(text)), path)
		if err != nil {
			t.Fatal(err)
		}
		flavour, rest, _ := strings.Cut(filepath.Base(path), "-")
		number, _, _ := strings.Cut(rest, "_")
		c := configuration{name: filepath.Base(path), flavour: mycnf.Flavour(flavour), version: parsed(t, number)}
		c.settings = file.ServerSettings(c.flavour, c.version)
		list = append(list, c)
	}
	for flavour, number := range map[mycnf.Flavour]string{mycnf.MySQL: "9.7.4", mycnf.MariaDB: "10.11.19", mycnf.Percona: "8.0.36"} {
		p := rules.Problem{Flavour: flavour, Version: parsed(t, number), CPUs: 4, Memory: 16 << 30, FreeDisk: 200 << 30, Threads: 16, Tables: 10}
		for _, b := range rules.Baselines(p) {
			list = append(list, configuration{fmt.Sprintf("%s %s", flavour, b.Name), flavour, p.Version, b.Settings})
		}
	}
	slices.SortFunc(list, func(a, b configuration) int { return strings.Compare(a.name, b.name) })
	return list
}

func parsed(t *testing.T, number string) mycnf.Version {
	t.Helper()
	v, err := mycnf.ParseVersion(number)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// So many configurations are drawn at random, and each is put on so many machines.
const (
	randomConfigurations = 30
	machinesEach         = 2
)

// machines are those that every configuration is put on. Pods and trials know nothing of free disk but what
// is said here.
func machines() []advice.Machine {
	return []advice.Machine{
		{Memory: 24 << 30, CPUs: 2},
		{Memory: 16 << 30, CPUs: 4},
		{Memory: 1 << 30, CPUs: 1},
		{Memory: 24105 << 20, CPUs: 2}, // 23.54 GiB, no multiple of anything
	}
}

func (c configuration) file(m advice.Machine) advice.Facts {
	f := advice.Facts{Flavour: c.flavour, Version: c.version, Machine: m}
	f.Variables, f.Set = advice.Effective(c.flavour, c.version, c.settings)
	return f
}

// server returns the facts of a running server with the values that the file gives it.
func (c configuration) server(m advice.Machine) advice.Facts {
	f := c.file(m)
	f.Live, f.Status = true, map[string]string{"uptime": "60"}
	return f
}

// pod returns what the check of manifests sees of a pod with the file.
func (c configuration) pod(t *testing.T, m advice.Machine) advice.Facts {
	t.Helper()
	image := map[mycnf.Flavour]string{mycnf.MySQL: "mysql", mycnf.Percona: "percona/percona-server", mycnf.MariaDB: "mariadb"}[c.flavour]
	var cnf strings.Builder
	for _, s := range c.settings {
		text := s.Name + "=" + s.Value
		if s.Name == "skip_grant_tables" { // which is another thing with an empty value
			text = s.Name
		}
		fmt.Fprintf(&cnf, "    %s\n", text)
	}
	text := fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata: {name: db}
data:
  my.cnf: |
    [mysqld]
%s---
apiVersion: v1
kind: Pod
metadata: {name: db}
spec:
  volumes: [{name: cnf, configMap: {name: db}}]
  containers:
  - name: db
    image: %s:%s
    resources: {limits: {cpu: %v, memory: "%d"}}
    volumeMounts: [{name: cnf, mountPath: /etc/mysql/conf.d}]
`, cnf.String(), image, c.version, m.CPUs, m.Memory)
	docs, found := check.Read("db.yaml", []byte(text))
	facts := check.Facts(docs)
	if len(facts) != 1 {
		t.Fatalf("%s: %d servers, %+v\n%s", c.name, len(facts), found, text)
	}
	return facts[0]
}

// trial returns what explain tells the adviser of a measured run of the server, by way of what was read back
// from it.
func (c configuration) trial(m advice.Machine) advice.Facts {
	in := explain.Input{Server: result.Server{Flavour: c.flavour, Version: c.version.String()}, Arm: result.Arm{Effective: c.file(m).Variables},
		Host: host.Facts{CPU: host.CPU{Usable: m.CPUs}, Memory: host.Memory{Total: m.Memory, Limit: m.Memory}}}
	return explain.Facts(in)
}

// said returns what a report proposes, less the rules about how a file is written, which only a file has.
func said(r advice.Report) map[string]string {
	spelling := []string{"unknown-variable", "option-misread", "deprecated-variable", "redo-set-twice", "not-persisted", "init-file", "preloaded"}
	all := map[string]string{}
	for _, f := range r.Findings {
		if !slices.Contains(spelling, f.Name) {
			all[f.Name+" "+f.Variable] = fmt.Sprintf("%s %s", f.Severity, f.Line)
		}
	}
	return all
}

// TestAgreement: a file, a server that runs with it, a pod and a trial of the same size get the same advice.
func TestAgreement(t *testing.T) {
	list := configurations(t)
	if len(list) < 30 {
		t.Fatalf("only %d configurations", len(list))
	}
	findings := 0
	for _, c := range list {
		for _, m := range machines() {
			file := said(advice.Of(c.file(m)))
			findings += len(file)
			for who, facts := range map[string]advice.Facts{"server": c.server(m), "pod": c.pod(t, m), "trial": c.trial(m)} {
				if got := said(advice.Of(facts)); !maps.Equal(file, got) {
					t.Errorf("%s, %d GiB: a file and a %s differ:\n%s", c.name, m.Memory>>30, who, differ(file, got))
				}
			}
		}
	}
	if findings < 300 {
		t.Errorf("only %d findings were compared", findings)
	}
	sizedAlike(t)
}

// sizedAlike: to a server that sets nothing the adviser proposes the pool of david's sizing rules, with which a tune
// begins and which a race has, whatever the machine.
func sizedAlike(t *testing.T) {
	t.Helper()
	compared := 0
	for flavour, numbers := range map[mycnf.Flavour][]string{
		mycnf.MySQL:   {"5.7.44", "8.0.36", "8.4.6", "9.7.4"},
		mycnf.Percona: {"8.0.36"},
		mycnf.MariaDB: {"10.5.20", "10.11.19", "11.4.5"},
	} {
		for _, number := range numbers {
			c := configuration{flavour: flavour, version: parsed(t, number)}
			sizes := []int64{}
			for memory := int64(1500); memory < 150_000; memory = memory*7/5 + 1 {
				sizes = append(sizes, memory)
			}
			// What a connection takes shows only where the pool is near a multiple of its chunk.
			for memory := int64(1600); memory < 2400 && number == "10.11.19"; memory += 5 {
				sizes = append(sizes, memory)
			}
			for _, memory := range sizes {
				for _, cpus := range []float64{1, 1.5, 2, 4, 64} {
					m := advice.Machine{Memory: memory << 20, CPUs: cpus}
					want := map[string]string{}
					for _, s := range rules.Memory(rules.Problem{Flavour: flavour, Version: c.version, CPUs: cpus, Memory: m.Memory}).Settings {
						want[s.Name] = s.Value
					}
					got := map[string]string{}
					for _, f := range advice.Of(c.file(m)).Findings {
						if s, ok := f.Setting(); ok {
							got[s.Name] = s.Value
						}
					}
					const pool, instances = "innodb_buffer_pool_size", "innodb_buffer_pool_instances"
					if got[pool] != "" && got[pool] != want[pool] || got[instances] != "" && got[instances] != want[instances] {
						t.Errorf("%s %s, %d MiB, %g CPUs: the adviser has %s in %q, the sizing rules %s in %q", flavour, number, memory, cpus,
							got[pool], got[instances], want[pool], want[instances])
					}
					if got[pool] != "" {
						compared++
					}
				}
			}
		}
	}
	if compared < 500 {
		t.Errorf("only %d pools were compared", compared)
	}
}

// TestGeneratorAgrees renders manifests from option files, as david manifest --cnf does. The adviser looks at
// the pod that came of it, and at its my.cnf alone, and must find the same in both.
func TestGeneratorAgrees(t *testing.T) {
	rendered, findings := 0, 0
	for _, c := range configurations(t) {
		for _, m := range machines() {
			objects, err := manifest.Render(c.request(m))
			if errors.Is(err, render.ErrBad) {
				continue // not for this pod: too much memory, an old version
			}
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			if err := render.Encode(&text, objects); err != nil {
				t.Fatal(err)
			}
			docs, _ := check.Read("-", text.Bytes())
			facts := check.Facts(docs)
			if len(facts) != 1 {
				t.Fatalf("%s: %d servers", c.name, len(facts))
			}
			alone := c
			alone.settings = cnfOf(t, c, docs)
			file, pod := said(advice.Of(alone.file(m))), said(advice.Of(facts[0]))
			if !maps.Equal(file, pod) {
				t.Errorf("%s, %d GiB: the rendered file and its pod differ:\n%s", c.name, m.Memory>>30, differ(file, pod))
			}
			rendered, findings = rendered+1, findings+len(file)
		}
	}
	t.Logf("%d renderings, %d findings", rendered, findings)
	if rendered < 30 || findings < 30 {
		t.Errorf("only %d renderings with %d findings", rendered, findings)
	}
}

// request asks for one server in a StatefulSet, on a node like the machine, with the settings of the option file.
func (c configuration) request(m advice.Machine) render.Request {
	return render.Request{
		Name: "db", Namespace: "db", Secret: "db",
		Flavor: render.StatefulSet, Replicas: 1, HA: render.HANone, Expose: render.ClusterIP,
		Server: c.flavour, Version: c.version, Settings: slices.Clone(c.settings),
		CPUs: int(m.CPUs), Memory: m.Memory, Size: 50 << 30, Storage: "class:fast",
	}
}

// cnfOf are the settings of the my.cnf in objects.
func cnfOf(t *testing.T, c configuration, docs []stream.Document) []mycnf.Setting {
	t.Helper()
	for _, d := range docs {
		data, ok := d.Get("data").(map[string]any)
		if !ok || d.Kind() != "ConfigMap" {
			continue
		}
		for _, text := range data {
			file, err := mycnf.Parse(strings.NewReader(fmt.Sprint(text)), "my.cnf")
			if err != nil {
				t.Fatal(err)
			}
			return file.ServerSettings(c.flavour, c.version)
		}
	}
	t.Fatalf("%s: no my.cnf was rendered", c.name)
	return nil
}

func differ(a, b map[string]string) string {
	var list []string
	for key, value := range a {
		if b[key] != value {
			list = append(list, fmt.Sprintf("  %s: %q, %q", key, value, b[key]))
		}
	}
	for key, value := range b {
		if _, both := a[key]; !both {
			list = append(list, fmt.Sprintf("  %s: none, %q", key, value))
		}
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// TestFixedPoint: advice that was followed leads to no other finding, in a file and on a server.
func TestFixedPoint(t *testing.T) {
	sizes := []int64{0, 24 << 20, 3 << 30, 100 << 30}
	random := rand.New(rand.NewPCG(21, 21))
	for _, c := range append(configurations(t), randomly(t, random)...) {
		all := append(machines(), advice.Machine{Memory: 64 << 30, CPUs: 16, WriteIOPS: 30000}, advice.Machine{})
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for i, m := range all[:machinesEach] {
			m.FreeDisk = []int64{0, 2 << 30, 500 << 30}[random.IntN(3)]
			m.Data = sizes[(i+len(c.name))%len(sizes)]
			m.DataSeen = m.Data > 0
			settled(t, c.name+" file", c.file(m))
			m.Available = []int64{0, 300 << 20, 10 << 30}[random.IntN(3)]
			settled(t, c.name+" server", c.server(m))
		}
	}
}

// settled follows the advice for facts, and asks again.
func settled(t *testing.T, what string, facts advice.Facts) {
	t.Helper()
	first := advice.Of(facts)
	before := said(first)
	lines := map[string]string{}
	for _, f := range first.Findings {
		at := f.Variable + " " + f.Where
		if f.Line != "" && !f.Choice && lines[at] != "" && lines[at] != f.Line {
			t.Errorf("%s, %+v: %s is to be both %q and %q", what, facts.Machine, f.Variable, lines[at], f.Line)
		}
		if f.Line != "" && !f.Choice {
			lines[at] = f.Line
		}
	}
	again := advice.Of(facts.Following(first.Findings))
	for _, f := range again.Findings {
		_, was := before[f.Name+" "+f.Variable]
		if s, proposes := f.Setting(); proposes {
			t.Errorf("%s, %+v: %s is proposed to whoever followed the advice (%s)\n%v", what, facts.Machine, s.Name+"="+s.Value, f.Evidence, before)
		} else if !was && f.Severity != advice.Note {
			t.Errorf("%s, %+v: %s is new: %s\n%v", what, facts.Machine, f.Name, f.Evidence, before)
		}
	}
}

// randomly returns configurations with values at and around the bounds of the rules.
func randomly(t *testing.T, r *rand.Rand) (list []configuration) {
	values := map[string][]string{
		"innodb_buffer_pool_size": {"5M", "128M", "1G", "7G", "20G", "60G", "1T"}, "innodb_buffer_pool_instances": {"1", "8", "64"},
		"max_connections": {"10", "151", "1000", "20000"}, "sort_buffer_size": {"32K", "256K", "4M", "64M", "1G"}, "join_buffer_size": {"256K", "5M", "256M"},
		"innodb_log_buffer_size": {"1M", "16M", "64M", "1G"}, "innodb_redo_log_capacity": {"8M", "512M", "2G", "64G"}, "innodb_log_file_size": {"48M", "4G"},
		"innodb_io_capacity": {"100", "200", "3000", "50000"}, "innodb_io_capacity_max": {"200", "2000", "100000"}, "table_open_cache": {"1", "100", "2000", "50000"},
		"open_files_limit": {"0", "1024", "65535"}, "tmp_table_size": {"1K", "16M", "4G"}, "max_heap_table_size": {"16K", "16M"}, "performance_schema": {"ON", "OFF"},
		"sql_mode": {"", "ANSI_QUOTES", "TRADITIONAL", "4194304"}, "innodb_purge_threads": {"1", "4", "32"}, "innodb_flush_method": {"fsync", "O_DIRECT", "O_DSYNC"},
		"long_query_time": {"0", "10"}, "slow_query_log": {"ON", "OFF"}, "binlog_expire_logs_seconds": {"0", "60", "2592000"}, "innodb_doublewrite_pages": {"1", "512"},
		"innodb_dedicated_server": {"ON"}, "binlog_cache_size": {"4K", "16M"}, "skip_log_bin": {""}, "gtid_mode": {"ON", "OFF"}, "enforce_gtid_consistency": {"OFF", "WARN"},
	}
	flavours := map[mycnf.Flavour][]string{mycnf.MySQL: {"5.7.44", "8.0.28", "8.0.36", "8.4.6", "9.7.4"}, mycnf.MariaDB: {"10.5.20", "10.11.19", "11.4.5"}}
	for i := range randomConfigurations {
		flavour := []mycnf.Flavour{mycnf.MySQL, mycnf.MariaDB}[i%2]
		c := configuration{name: fmt.Sprintf("random %d", i), flavour: flavour, version: parsed(t, flavours[flavour][r.IntN(len(flavours[flavour]))])}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if _, has := mycnf.Lookup(name, c.flavour, c.version); has && r.IntN(3) == 0 {
				c.settings = append(c.settings, mycnf.Setting{Name: name, Value: values[name][r.IntN(len(values[name]))]})
			}
		}
		list = append(list, c)
	}
	return list
}
