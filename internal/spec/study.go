package spec

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

//go:embed sample.yaml
var sample []byte

//go:embed schema.json
var schema []byte

//go:embed studies
var studies embed.FS

// Sample is an annotated spec that holds every key.
func Sample() []byte { return bytes.Clone(sample) }

// Schema is the JSON schema (draft 2020-12) of a spec, for editors. It knows the keys and their types; Parse
// knows more.
func Schema() []byte { return bytes.Clone(schema) }

// Study is a published study with the experiments that repeat it.
type Study struct {
	Name  string `yaml:"-"` // "p1"
	Title string `yaml:"title"`
	Specs []Spec `yaml:"-"`
	// Refused are experiments as they were published, of a kind that gives no verdict.
	Refused []Spec `yaml:"-"`
	// Setup describes what the published figures were measured on.
	Setup     Setup    `yaml:"setup"`
	Published []Figure `yaml:"published"`
	Findings  []string `yaml:"findings"` // what it concluded in words, and what is to be said of that
	Differs   []string `yaml:"differs"`  // between the study and its repetition here, on whichever machine
	Files     []string `yaml:"specs"`    // the names of Specs
	AsWas     []string `yaml:"refused"`  // of Refused
	Ceph      bool     `yaml:"ceph"`     // its data lie on Ceph
	Cluster   bool     `yaml:"cluster"`  // its servers and clients are pods: it has no Specs
}

// Setup says in words what a study ran on.
type Setup struct {
	CPUs    string `yaml:"cpus"`
	Memory  string `yaml:"memory"`
	Server  string `yaml:"server"`
	Client  string `yaml:"client"`
	Storage string `yaml:"storage"`
}

// Figure is a published number. Unit is "" for the value of a variable.
type Figure struct {
	What  string  `yaml:"what"`
	Value float64 `yaml:"value"`
	Unit  string  `yaml:"unit"`
	// Arm is the arm here whose figure stands beside it, and Of which of its figures that is: "tps", "qps",
	// "avg", "p95", "min", "max" (latencies in ms), or "ratio", its throughput to its control's. Both are ""
	// where nothing here answers to it. "iops_per_gb" is of no arm, but of a Ceph as full as "ceph-14" says;
	// nor is "ceph-servers", what several servers get done beside each other on one.
	Arm string `yaml:"arm"`
	Of  string `yaml:"of"`
	// Bound says that the figure is no value but a bound of it, as "above" of "more than 2 x", or "below".
	Bound string `yaml:"bound" json:"-"`
}

// StudyNames lists the studies shipped.
func StudyNames() []string { return []string{"p1", "p2", "p3", "p4", "p5"} }

// LoadStudy gives a study by its name.
func LoadStudy(name string) (Study, error) {
	if !slices.Contains(StudyNames(), name) {
		return Study{}, fmt.Errorf("there is no study %q (known: %s)", name, strings.Join(StudyNames(), ", "))
	}
	st := Study{Name: name}
	text, file, err := readStudy(name)
	if err != nil {
		return Study{}, err
	}
	if lines, err := decode(text, &st); err != nil {
		return Study{}, located(err, file, lines)
	}
	if st.Specs, err = readSpecs(st.Files); err != nil {
		return Study{}, err
	}
	st.Refused, err = readSpecs(st.AsWas)
	return st, err
}

func readSpecs(names []string) (list []Spec, err error) {
	for _, name := range names {
		text, file, err := readStudy(name)
		if err != nil {
			return nil, err
		}
		s, err := Parse(bytes.NewReader(text), file)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

func readStudy(name string) (text []byte, file string, err error) {
	file = path.Join("studies", name+".yaml")
	text, err = studies.ReadFile(file)
	return text, file, err
}

// Parts names a study's experiments: "ladder" of p1-ladder.
func (st Study) Parts() (list []string) {
	for _, file := range st.Files {
		list = append(list, strings.TrimPrefix(file, st.Name+"-"))
	}
	return list
}

// Loads names the loads of a study's experiments, each once.
func (st Study) Loads() (list []string) {
	for _, s := range st.Specs {
		for _, l := range s.Loads {
			if !slices.Contains(list, l.Name) {
				list = append(list, l.Name)
			}
		}
	}
	return list
}

// Only gives the study with some of its experiments, and some of their loads; none named: all.
func (st Study) Only(parts, loads []string) (Study, error) {
	if err := known("part", parts, st.Parts()); err != nil {
		return st, err
	}
	if err := known("workload", loads, st.Loads()); err != nil {
		return st, err
	}
	var specs []Spec
	for i, name := range st.Parts() {
		if len(parts) > 0 && !slices.Contains(parts, name) {
			continue
		}
		s := st.Specs[i]
		s.Loads = slices.DeleteFunc(slices.Clone(s.Loads), func(l Load) bool { return len(loads) > 0 && !slices.Contains(loads, l.Name) })
		specs = append(specs, s)
	}
	st.Specs = specs
	return st, nil
}

func known(flag string, names, all []string) error {
	for _, name := range names {
		if !slices.Contains(all, name) {
			return fmt.Errorf("--%s %s: the study has %s", flag, name, strings.Join(all, ", "))
		}
	}
	return nil
}

// Scaled is a size to which a study is cut down. What is 0 stays as it is.
type Scaled struct {
	Tables, Rows int // rows of each table
	Time         time.Duration
	Warmup       time.Duration // below 0: as it is
	Blocks       int
	OneLoad      bool // of several numbers of threads only the first is left
}

// AsIs leaves a study as it is.
func AsIs() Scaled { return Scaled{Warmup: -1} }

// Quick is small enough for minutes, and far too small for a conclusion.
func Quick() Scaled {
	return Scaled{Tables: 4, Rows: 25_000, Time: 5 * time.Second, Warmup: time.Second, Blocks: 3, OneLoad: true}
}

// Scale gives the study cut down to a size.
func (st Study) Scale(size Scaled) Study {
	st.Specs = slices.Clone(st.Specs)
	for i, s := range st.Specs {
		st.Specs[i] = s.scale(size)
	}
	return st
}

func (s Spec) scale(size Scaled) Spec {
	if size.Time > 0 {
		s.Time = Duration(size.Time)
	}
	if size.Warmup >= 0 {
		s.Warmup = Duration(size.Warmup)
	}
	if size.Blocks > 0 {
		s.Blocks, s.Precision, s.Budget = size.Blocks, 0, 0
	}
	s.Loads = slices.Clone(s.Loads)
	for i := range s.Loads {
		l := &s.Loads[i]
		l.Tables, l.TableSize = cmp.Or(size.Tables, l.Tables), cmp.Or(size.Rows, l.TableSize)
		if size.OneLoad {
			l.Threads = l.Threads[:1]
		}
	}
	return s
}
