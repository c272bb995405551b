package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"david/internal/spec"
)

// shortFlags cut a study down: to some of its experiments and loads, to smaller data and shorter trials.
type shortFlags struct {
	quick             bool
	parts, loads      []string
	time, warmup      time.Duration
	blocks            int
	tables, tableSize int
	given             []string // as they stand on the command line
}

// add registers the flags; parts and loads name those of the study, where there are several.
func (f *shortFlags) add(fs *pflag.FlagSet, parts, loads string) {
	if parts != "" {
		fs.StringSliceVar(&f.parts, "part", nil, "experiments of the study to run, with commas between: "+parts+" (default: all)")
	}
	if loads != "" {
		fs.StringSliceVar(&f.loads, "workload", nil, "loads of the study to run, with commas between: "+loads+" (default: all)")
	}
	fs.IntVar(&f.tables, "tables", 0, "tables (default: as the study has it here)")
	fs.IntVar(&f.tableSize, "table-size", 0, "rows per table (default: as the study has it here)")
	fs.DurationVar(&f.time, "time", 0, "measured time of a trial (default: as the study has it here)")
	fs.DurationVar(&f.warmup, "warmup", 0, "time before it that is not measured (default: as the study has it here)")
	for _, name := range []string{"time", "warmup"} {
		fs.Lookup(name).DefValue = "" // the study's own, not 0s
	}
	fs.IntVar(&f.blocks, "blocks", 0, "blocks of trials (default: as the study has it here)")
}

// shorten gives the study as it is to be run.
func (f *shortFlags) shorten(st spec.Study, fs *pflag.FlagSet) (spec.Study, error) {
	size := spec.AsIs()
	if f.quick {
		size = spec.Quick()
	}
	for _, flag := range []struct {
		name string
		ok   bool
		set  func()
	}{
		{"tables", f.tables > 0, func() { size.Tables = f.tables }}, {"table-size", f.tableSize > 0, func() { size.Rows = f.tableSize }},
		{"time", f.time >= time.Second, func() { size.Time = f.time }}, {"warmup", f.warmup >= 0, func() { size.Warmup = f.warmup }}, {"blocks", f.blocks > 0, func() { size.Blocks = f.blocks }},
	} {
		if !fs.Changed(flag.name) {
			continue
		}
		if value := fs.Lookup(flag.name).Value.String(); !flag.ok {
			return st, usage("--%s %s: too little", flag.name, value)
		} else {
			f.given = append(f.given, "--"+flag.name+" "+value)
		}
		flag.set()
	}
	st = st.Scale(size)
	var err error
	if st, err = st.Only(f.parts, f.loads); err != nil {
		return st, usage("%w", err)
	}
	for _, s := range st.Specs {
		if _, err := s.Checked(); err != nil {
			return st, usage("%s: %w", st.Name, err)
		}
	}
	return st, nil
}

// short tells whether the study has other data, times or blocks than it has here.
func (f *shortFlags) short() bool { return f.quick || len(f.given) > 0 }

// differs says what of the study was cut down; nothing where it is whole.
func (f *shortFlags) differs() (list []string) {
	if f.quick {
		list = append(list, "--quick: small data and trials of seconds. Nothing is to be concluded from this run.")
	}
	if len(f.given) > 0 {
		list = append(list, fmt.Sprintf("Cut down by %s: other data, times or blocks than the study has here.", strings.Join(f.given, ", ")))
	}
	if picked := slices.Concat(f.parts, f.loads); len(picked) > 0 {
		list = append(list, fmt.Sprintf("Run were %s alone; what stands beside other figures is of an earlier run.", strings.Join(picked, ", ")))
	}
	return list
}
