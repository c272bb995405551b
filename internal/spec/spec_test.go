package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/testserver"
)

// small is a spec that is right; tests add to it.
const small = "arms: [{name: control}, {name: big, set: [innodb_buffer_pool_size=8G]}]\nworkloads: [{name: oltp_read_write}]\n"

func parse(t *testing.T, text string) Spec {
	t.Helper()
	s, err := Parse(strings.NewReader(text), "x.yaml")
	if err != nil {
		t.Fatalf("%v, of:\n%s", err, text)
	}
	return s
}

func TestDefaults(t *testing.T) {
	s := parse(t, small)
	want := result.Workload{Name: "oltp_read_write", Tables: 10, TableSize: 1_000_000, Threads: 4, Seconds: 60, Warmup: 15, RandType: "uniform", Database: "sbtest"}
	if got := s.Workloads(); len(got) != 1 || got[0] != want {
		t.Errorf("workloads %+v, want %+v", got, want)
	}
	if got, want := s.Design(), (result.Design{Control: "control", Blocks: 6, Twin: true}); !reflect.DeepEqual(got, want) {
		t.Errorf("design %+v, want %+v", got, want)
	}
	if s.ServerOf(s.Arms[1]) != "auto" {
		t.Errorf("server %q, want auto", s.ServerOf(s.Arms[1]))
	}
	if got := parse(t, small+"warmup: 0s\n").Workloads()[0].Warmup; got != 0 {
		t.Errorf("a warm-up of 0s became %d s", got)
	}
	if got := parse(t, small+"precision: 2%\n").Design(); got.Precision != 0.02 || got.Budget != 1800 || got.Blocks != 0 {
		t.Errorf("with a precision alone: %+v", got)
	}
}

func TestSampleHoldsEveryKey(t *testing.T) {
	s := parse(t, string(Sample()))
	if len(s.Workloads()) != 2 || s.Caps.Bandwidth != 125<<20 || s.CapsOf(s.Arms[2]).CPUs != 1.9 || s.CapsOf(s.Arms[2]).IOPS != 5000 {
		t.Errorf("the sample was read as %+v", s)
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[Spec](), reflect.TypeFor[Arm](), reflect.TypeFor[Load](), reflect.TypeFor[Caps]()} {
		for _, key := range keysOf(typ) {
			if !regexp.MustCompile(`(?m)(^|[ {])` + key + `:`).Match(Sample()) {
				t.Errorf("the sample does not show %s of %s", key, typ)
			}
		}
	}
}

// compiled is the shipped schema.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("spec.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("spec.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// validate holds YAML against the schema.
func validate(t *testing.T, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc)
}

func TestSchemaAcceptsWhatIsShipped(t *testing.T) {
	s := compiled(t)
	texts := map[string][]byte{"sample": Sample(), "small": []byte(small)}
	for _, name := range StudyNames() {
		st := study(t, name)
		for _, f := range append(st.Files, st.AsWas...) {
			text, _, err := readStudy(f)
			if err != nil {
				t.Fatal(err)
			}
			texts[f] = text
		}
	}
	for name, text := range texts {
		if err := validate(t, s, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSchemaHasTheKeysOfTheStructs(t *testing.T) {
	var doc struct {
		Properties map[string]any `json:"properties"`
		Defs       map[string]struct {
			Properties map[string]any `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	for typ, properties := range map[reflect.Type]map[string]any{
		reflect.TypeFor[Spec](): doc.Properties, reflect.TypeFor[Arm](): doc.Defs["arm"].Properties,
		reflect.TypeFor[Load](): doc.Defs["workload"].Properties, reflect.TypeFor[Caps](): doc.Defs["caps"].Properties,
	} {
		var got []string
		for key := range properties {
			got = append(got, key)
		}
		want := keysOf(typ)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: the schema has %v, the struct %v", typ, got, want)
		}
	}
}

// TestRefusedByBoth holds what schema and Parse must agree on.
func TestRefusedByBoth(t *testing.T) {
	s := compiled(t)
	for _, text := range []string{
		small + "blcoks: 3\n",
		strings.Replace(small, "set:", "sets:", 1),
		strings.Replace(small, "name: oltp_read_write", "name: oltp_read_write, table_sise: 3", 1),
		small + "caps: {cpu: 2}\n",
		small + "blocks: 3\nprecision: 2%\n",
		small + "blocks: 3\nbudget: 1h\n",
		small + "blocks: 0\n",
		small + "version: 2\n",
		small + "time: 60\n",
		small + "precision: 2\n",
		strings.Replace(small, "name: oltp_read_write", "name: oltp_read_wrote", 1),
		strings.Replace(small, "name: big", "name: a/b", 1),
		"arms: []\nworkloads: [{name: balanced}]\n",
		"arms: [{name: control}]\n",
	} {
		if err := validate(t, s, []byte(text)); err == nil {
			t.Errorf("the schema lets through:\n%s", text)
		}
		if _, err := Parse(strings.NewReader(text), "x.yaml"); err == nil {
			t.Errorf("Parse lets through:\n%s", text)
		}
	}
}

func TestErrorsNameFileLineAndKey(t *testing.T) {
	arms, load := "arms: [{name: control}]\n", "workloads: [{name: balanced}]\n"
	for text, want := range map[string]string{
		small + "blcoks: 3\n":                "x.yaml:3: blcoks: unknown key; did you mean blocks?",
		small + "zzzzzz: 3\n":                "known: version, title",
		small + "<<: {blocks: 3}\n":          "x.yaml:3: <<: unknown key",
		small + "blocks: many\n":             `x.yaml:3: blocks: "many" is not a whole number`,
		small + "blocks: [1]\n":              "x.yaml:3: blocks: want a whole number, not a list",
		small + "blocks:\n":                  "x.yaml:3: blocks: it has no value",
		small + "blocks: 0\n":                "x.yaml:3: blocks: it must be more than 0",
		small + "blocks: -1\n":               "x.yaml:3: blocks: cannot run -1 blocks",
		small + "blocks: 3\nprecision: 2%\n": "x.yaml:4: precision: both blocks and precision",
		small + "precision: 2\n":             "x.yaml:3: precision: cannot read percentage",
		small + "precision: 99%\n":           "x.yaml:3: precision: cannot reach",
		small + "budget: 2m\n":               "x.yaml:3: budget: 2m0s is too short for one block of 3 trials: give at least 4m9s",
		small + "time: 60\n":                 "x.yaml:3: time: cannot read time",
		small + "time: 0s\n":                 "x.yaml:3: time: cannot measure for 0s",
		small + "warmup: -1s\n":              "x.yaml:3: warmup: cannot read time",
		small + "seed: -1\n":                 `x.yaml:3: seed: "-1" is not a whole number, not negative`,
		small + "steady: perhaps\n":          `x.yaml:3: steady: "perhaps" is not true or false`,
		small + "control: contrl\n":          `x.yaml:3: control: there is no arm "contrl"; did you mean control?`,
		small + "caps: {memory: lots}\n":     "x.yaml:3: caps.memory: cannot read size",
		small + "caps: {memory: 1M}\n":       "x.yaml:3: caps.memory: cannot cap at 1M",
		small + "caps: {cpus: .nan}\n":       "x.yaml:3: caps.cpus: cannot cap",
		small + "caps: {iops: -5}\n":         "x.yaml:3: caps.iops: cannot cap",
		small + "time: 60s\ntime: 60s\n":     "already defined",
		small + "---\n" + small:              "more than one document",
		small + "blocks: 1000\nblocks2: [\n": "x.yaml: line",
		"":                                   "x.yaml: it is empty",
		"[]":                                 "spec x.yaml: want a mapping",
		"null":                               "x.yaml: it is empty",
		"--- ~\n":                            "x.yaml: it is empty",
		small + "title: \"a\\nb\"\n":         "x.yaml:3: title: it holds a control character",
		small + "title: \"a\\e[2Jb\"\n":      "x.yaml:3: title: it holds a control character",
		"arms:\n- {name: control, title: \"\\r\"}\n" + load: "x.yaml:2: arms[0].title: it holds a control character",
		load:                         "arms: there are none",
		arms:                         "workloads: there are none",
		"arms: []\n" + load:          "x.yaml:1: arms: there are none",
		"arms: [{name: a}]\n" + load: "control: no arm is named control",
		"arms:\n- name: control\n- name: control\n" + load:                                  "x.yaml:3: arms[1].name: two arms are named control",
		"arms:\n- name: control\n- set: []\n" + load:                                        "x.yaml:3: arms[1].name: cannot name an arm \"\"",
		"arms:\n- name: control\n- name: ../x\n" + load:                                     "x.yaml:3: arms[1].name: cannot name an arm",
		"arms: [{name: control, set: 3}]\n" + load:                                          "arms[0].set: cannot read the settings",
		"arms: [{name: control, set: [nonsense]}]\n" + load:                                 "arms[0].set: cannot read setting",
		"arms: [{name: control, set: {a: ~}}]\n" + load:                                     "a needs one value",
		"arms: [{name: control, set: {a: 5% of it}}]\n" + load:                              "want 5% of memory or 5% of data",
		"arms: [{name: control, set: {a: 'min(5%'}}]\n" + load:                              "want min(SIZE, SIZE)",
		"server: mysql\narms: [{name: control}, {name: m, server: mariadb}]\n" + load:       "x.yaml:2: arms[1].server: the control runs on mysql, this arm on mariadb",
		arms + "workloads: [{name: balancd}]\n":                                             "did you mean balanced?",
		arms + "workloads:\n- name: balanced\n  threads: 0\n":                               "x.yaml:3: workloads[0]: cannot run balanced with 0 threads",
		arms + "workloads:\n- name: balanced\n  threads: few\n":                             "x.yaml:4: workloads[0].threads: cannot read numbers of threads",
		arms + "workloads:\n- name: balanced\n  threads: []\n":                              "x.yaml:4: workloads[0].threads: there are none",
		arms + "workloads:\n- name: balanced\n  threads: [4, 4]\n":                          "balanced with 4 threads stands twice",
		arms + "workloads:\n- name: balanced\n  tables: 0\n":                                "0 tables",
		arms + "workloads:\n- name: balanced\n  rand_type: zipf\n":                          "x.yaml:4: workloads[0].rand_type",
		arms + "workloads:\n- name: balanced\n  rate: -1\n":                                 "x.yaml:4: workloads[0].rate: cannot run",
		arms + "workloads:\n- name: balanced\n  rate: .inf\n":                               "x.yaml:4: workloads[0].rate: cannot run",
		arms + "blocks: 1000\nworkloads: [{name: balanced, threads: [" + upTo(60) + "]}]\n": "x.yaml:3: workloads: cannot plan 120000 trials",
	} {
		_, err := Parse(strings.NewReader(text), "x.yaml")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "x.yaml") || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v\nwant %s\nof:\n%s", err, want, text)
		}
	}
}

// upTo writes 1,2,...,n.
func upTo(n int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(slices.Collect(count(n))), " ", ","), "[]")
}

func count(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := 1; i <= n && yield(i); i++ {
		}
	}
}

func TestSettings(t *testing.T) {
	s := parse(t, `
arms:
  - name: control
  - name: sized
    set:
      innodb_buffer_pool_size: min(12G, 75%)
      max_connections: 150
      init_connect: "SELECT '5%'"
    mysql: [innodb_redo_log_capacity=37.5%]
    mariadb: [innodb_log_file_size=10% of data]
  - name: capped
    set: [innodb_buffer_pool_size=50% of memory]
    caps: {memory: 1G}
workloads: [{name: balanced, tables: 2, table_size: 1000000}]
`)
	for _, c := range []struct {
		arm     int
		flavour mycnf.Flavour
		memory  int64
		want    []string
	}{
		{0, mycnf.MySQL, 8 << 30, nil},
		{1, mycnf.MySQL, 8 << 30, []string{"innodb_buffer_pool_size=6G", "max_connections=150", "init_connect=SELECT '5%'", "innodb_redo_log_capacity=3G"}},
		{1, mycnf.Percona, 64 << 30, []string{"innodb_buffer_pool_size=12G", "max_connections=150", "init_connect=SELECT '5%'", "innodb_redo_log_capacity=24G"}},
		{1, mycnf.MariaDB, 1, []string{"innodb_buffer_pool_size=8M", "max_connections=150", "init_connect=SELECT '5%'", "innodb_log_file_size=63M"}},
		{2, mycnf.MySQL, 8 << 30, []string{"innodb_buffer_pool_size=512M"}},
	} {
		got, err := s.Settings(s.Arms[c.arm], c.flavour, c.memory)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s on %s: %q, %v; want %q", s.Arms[c.arm].Name, c.flavour, got, err, c.want)
		}
	}
	if _, err := s.Settings(s.Arms[1], mycnf.MySQL, 0); err == nil {
		t.Error("a share of an unknown memory was worked out")
	}
	s.Loads = append(s.Loads, DefaultLoad())
	if _, err := s.Settings(s.Arms[1], mycnf.MariaDB, 8<<30); err == nil {
		t.Error("a share of data of several sizes was worked out")
	}
}

func TestTrials(t *testing.T) {
	text := strings.Replace(small, "name: oltp_read_write", "name: oltp_read_write, threads: [1, 2]", 1)
	trials := parse(t, text+"blocks: 3\n").Trials()
	twins, seen := 0, map[Planned]bool{}
	for _, p := range trials {
		if p.Twin {
			twins++
		}
		if p.Seconds != 83 {
			t.Errorf("%+v should take 83 s", p)
		}
		if seen[p] {
			t.Errorf("%+v stands twice", p)
		}
		seen[p] = true
	}
	if len(trials) != 3*2*3 || twins != 3*2 || trials[len(trials)-1].Block != 3 {
		t.Errorf("%d trials with %d twins, want 18 with 6", len(trials), twins)
	}
	if got := len(parse(t, text+"budget: 17m\n").Trials()); got != 2*6 { // a block takes 498 s
		t.Errorf("a budget of 17m holds %d trials, want 12", got)
	}
}

func TestValuesComeBackFromJSON(t *testing.T) {
	s := parse(t, string(Sample()))
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back Spec
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(s, back) {
		t.Errorf("%+v\nbecame\n%+v", s, back)
	}
}

func study(t *testing.T, name string) Study {
	t.Helper()
	st, err := LoadStudy(name)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestStudies(t *testing.T) {
	for _, name := range StudyNames() {
		st := study(t, name)
		if (len(st.Specs) == 0) != st.Cluster || len(st.Published) == 0 || len(st.Differs) == 0 || st.Title == "" || st.Setup.CPUs == "" {
			t.Errorf("%s lacks a part: %+v", name, st)
		}
	}
	if _, err := LoadStudy("p9"); err == nil || !strings.Contains(err.Error(), "p1, p2") {
		t.Errorf("p9: %v", err)
	}
	s := study(t, "p1").Specs[0]
	want := result.Workload{Name: "oltp_read_write", Tables: 10, TableSize: 1_000_000, Threads: 4, Seconds: 60, Warmup: 15, RandType: "uniform", Database: "sbtest"}
	if got := s.Workloads(); len(got) != 1 || got[0] != want || !s.SkipNoops {
		t.Errorf("p1 does not run the published command: %+v", got)
	}
	if specs := study(t, "p2").Specs; len(specs) != 3 || len(specs[0].Workloads()) != 9 {
		t.Errorf("p2 is not three scenarios of three mixes under three numbers of threads")
	}
}

func TestScale(t *testing.T) {
	st := study(t, "p2")
	quick := st.Scale(Quick())
	total := 0.0
	for i, s := range quick.Specs {
		if _, err := s.Checked(); err != nil {
			t.Error(err)
		}
		for _, p := range s.Trials() {
			total += p.Seconds
		}
		if w := s.Workloads(); len(w) != 3 || w[0].TableSize != 25_000 || w[0].Seconds != 5 {
			t.Errorf("%+v", w)
		}
		if st.Specs[i].Loads[0].TableSize != 1_000_000 || len(st.Specs[i].Loads[0].Threads) != 3 {
			t.Error("Scale changed the study it was given")
		}
	}
	if limit := 20 * time.Minute; total > limit.Seconds() {
		t.Errorf("the quick p2 takes %.0f s", total)
	}
}

// TestOnly picks parts and loads, and leaves the rest of a study as it is.
func TestOnly(t *testing.T) {
	st := study(t, "p2")
	if got := strings.Join(st.Parts(), " ") + " " + strings.Join(st.Loads(), " "); got != "cpu-bound io-bound small-pool read-intensive balanced write-intensive" {
		t.Error(got)
	}
	one, err := st.Scale(AsIs()).Only([]string{"small-pool"}, []string{"balanced"})
	if err != nil || len(one.Specs) != 1 || one.Specs[0].Title != st.Specs[2].Title || len(one.Specs[0].Workloads()) != 3 || one.Specs[0].Workloads()[0].Seconds != 60 || one.Specs[0].Warmup != st.Specs[2].Warmup {
		t.Errorf("%+v, %v", one.Specs, err)
	}
	if len(st.Specs) != 3 || len(st.Specs[2].Loads) != 3 {
		t.Error("Only changed the study it was given")
	}
	short := st.Scale(Scaled{Time: 2 * time.Second, Rows: 500, Blocks: 4}).Specs[0]
	if w := short.Workloads(); len(w) != 9 || w[0].Seconds != 2 || w[0].Warmup != 0 || w[0].TableSize != 500 || w[0].Tables != 10 || short.Blocks != 4 {
		t.Errorf("%+v", short)
	}
	for want, pick := range map[string][2][]string{"--part all: the study has cpu-bound, io-bound, small-pool": {{"all"}, nil}, "--workload oltp_read_only: the study has read-intensive": {nil, {"oltp_read_only"}}} {
		if _, err := st.Only(pick[0], pick[1]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// settings are an arm's, parsed.
func settings(t *testing.T, s Spec, a Arm, flavour mycnf.Flavour) []mycnf.Setting {
	t.Helper()
	texts, err := s.Settings(a, flavour, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	var list []mycnf.Setting
	for _, text := range texts {
		one, err := mycnf.ParseSetting(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, one)
	}
	return list
}

// TestStudiesStartOnRealServers starts a server with the settings of every arm: it must take each of them,
// and none may break the durability lock, but those that say so. Arms that differ in the pool's size alone are
// tried once.
func TestStudiesStartOnRealServers(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range StudyNames() {
		for i, s := range study(t, name).Scale(Quick()).Specs {
			for _, a := range s.Arms {
				for _, flavour := range []mycnf.Flavour{mycnf.MySQL, mycnf.MariaDB} {
					list := settings(t, s, a, flavour)
					rest := string(flavour)
					for _, s := range list {
						if s.Name != "innodb_buffer_pool_size" {
							rest += " " + s.Name + "=" + s.Value
						}
					}
					if len(list) == 0 || seen[rest] {
						continue
					}
					seen[rest] = true
					t.Run(fmt.Sprintf("%s-%d/%s/%s", name, i+1, a.Name, flavour), func(t *testing.T) {
						takes(t, flavour, list)
						if broken := unlocked(flavour, list); a.Unsafe != (len(broken) > 0) {
							t.Errorf("it says unsafe: %v, and breaks the durability lock by %v", a.Unsafe, broken)
						}
					})
				}
			}
		}
	}
}

func takes(t *testing.T, flavour mycnf.Flavour, list []mycnf.Setting) {
	var options []string
	for _, s := range list {
		options = append(options, "--"+s.Name+"="+s.Value)
	}
	conn := testserver.Start(t, flavour, options...).Open()
	vars, err := conn.Variables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		if mycnf.MatchValues(s.Name, s.Value, vars[s.Name]) == mycnf.Different {
			t.Errorf("%s was set to %s, the server uses %q", s.Name, s.Value, vars[s.Name])
		}
	}
}

// unlocked are the settings that break the durability lock.
func unlocked(flavour mycnf.Flavour, list []mycnf.Setting) (broken []mycnf.Setting) {
	for _, l := range mycnf.Lock(flavour) {
		at := slices.IndexFunc(list, func(s mycnf.Setting) bool { return s.Name == l.Name })
		if at >= 0 && !slices.Contains(l.Safe, list[at].Value) {
			broken = append(broken, list[at])
		}
	}
	return broken
}

func FuzzParse(f *testing.F) {
	f.Add(Sample())
	f.Add([]byte(small + "blocks: 3\n"))
	f.Add([]byte("arms: &a [{name: control, set: {x: 'min(1G, 5% of data)'}}]\nworkloads: [{name: balanced, threads: 4}]\nbudget: 1h\n"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse(bytes.NewReader(text), "x.yaml")
		if err != nil {
			if !strings.Contains(err.Error(), "x.yaml") {
				t.Errorf("the error does not name the file: %v", err)
			}
			return
		}
		if n := len(s.Trials()); n < 2 || n > maxTrials {
			t.Errorf("%d trials", n)
		}
		if again, err := s.Checked(); err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("what Parse gave is refused or changed: %v", err)
		}
		for _, a := range s.Arms {
			if _, err := s.Settings(a, mycnf.MySQL, 1<<30); err != nil {
				t.Errorf("settings of %s: %v", a.Name, err)
			}
		}
	})
}

// A file that is no spec may be a secret: nothing of it stands in an error.
func TestNothingOfForeignFilesInErrors(t *testing.T) {
	for name, text := range map[string]string{
		"passwords": "root:$6$hunter2:19000:0:99999:7:::\ndaemon:*:19000:0:99999:7:::\n",
		"a key":     "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n-----END OPENSSH PRIVATE KEY-----\n",
		"a mapping": "hunter2: hunter2\n", "a list": "[hunter2]\n", "an anchor": "*hunter2\n", "a tag": "!hunter2 x\n",
		"another's": "version: hunter2\nhunter2: {hunter2: hunter2}\nservices: hunter2\n", "no UTF-8": "hunter2\xff\n",
		"JSON": `{"token": "hunter2"}`, "a tab": "hunter2:\n\t\thunter2\n",
	} {
		if _, err := Parse(strings.NewReader(text), "x"); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
