package cli

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"david/internal/home"
	"david/internal/manifest/render"
	"david/internal/mycnf"
	"david/internal/netpath"
	"david/internal/price"
	"david/internal/result"
	"david/internal/workload"
)

// everyCommand calls do for a command and all below it.
func everyCommand(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, sub := range cmd.Commands() {
		everyCommand(sub, do)
	}
}

// accustomed has a command take values and names as people are used to write them, and complete them.
func (a *app) accustomed(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Value.Type() == "duration":
			f.Value = secondsValue{f.Value}
			if f.DefValue == "0s" {
				f.DefValue = "0" // of a type that pflag does not know, it would show 0s as a default
			}
		case f.Name == "table-size":
			f.Value = rowsValue{f.Value}
		}
	})
	cmd.Flags().SetNormalizeFunc(spelled(cmd.Flags()))
	a.completes(cmd)
}

// secondsValue is a time that may be given as a number alone, as sysbench takes it.
type secondsValue struct{ pflag.Value }

var digits = regexp.MustCompile(`^[0-9]+$`)

// Set reads a time, without a unit in seconds.
func (s secondsValue) Set(text string) error {
	if digits.MatchString(text) {
		text += "s"
	}
	return s.Value.Set(text)
}

// rowsValue is a number of rows that may be given in thousands, millions or thousand millions.
type rowsValue struct{ pflag.Value }

// Set reads a number, as 1M for 1,000,000.
func (r rowsValue) Set(text string) error {
	factors := map[string]float64{"k": 1e3, "m": 1e6, "g": 1e9}
	if n := len(text); n > 1 {
		if factor, ok := factors[strings.ToLower(text[n-1:])]; ok {
			x, err := strconv.ParseFloat(text[:n-1], 64)
			if err != nil || x != math.Abs(x) || x*factor > mostNumber || x*factor != math.Trunc(x*factor) {
				return fmt.Errorf("give a number of rows, as 1M for 1,000,000")
			}
			text = strconv.FormatFloat(x*factor, 'f', 0, 64)
		}
	}
	return r.Value.Set(text)
}

// spelled takes flavour and flavor for the same, whichever a command has.
func spelled(fs *pflag.FlagSet) func(*pflag.FlagSet, string) pflag.NormalizedName {
	var own []string
	fs.VisitAll(func(f *pflag.Flag) { own = append(own, f.Name) })
	return func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if slices.Contains(own, name) {
			return pflag.NormalizedName(name)
		}
		for _, other := range []string{strings.Replace(name, "flavor", "flavour", 1), strings.Replace(name, "flavour", "flavor", 1)} {
			if slices.Contains(own, other) {
				return pflag.NormalizedName(other)
			}
		}
		return pflag.NormalizedName(name)
	}
}

// completes tells a shell what a command's arguments and flags may be.
func (a *app) completes(cmd *cobra.Command) {
	if strings.Contains(cmd.Use, "DIR") && !strings.Contains(cmd.Use, "DIR|FILE") || cmd.Name() == "rm" {
		cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return a.experimentNames(cmd.Name() != "rm"), cobra.ShellCompDirectiveDefault
		}
	}
	for name, values := range map[string]func() []string{
		"workload": workload.Names, "storage": render.Storages, "of": func() []string { return a.experimentNames(false) }, "from": func() []string { return a.experimentNames(true) },
		"server": func() []string {
			return []string{"auto", string(mycnf.MySQL), string(mycnf.Percona), string(mycnf.MariaDB)}
		},
		"like": machineNames, "machine": machineNames, "path": netpath.AllKinds,
		"flavour":   func() []string { return []string{string(mycnf.MySQL), string(mycnf.MariaDB)} },
		"objective": func() []string { return []string{"tps", "p99", "cost"} },
		"rand-type": func() []string { return []string{"uniform", "special", "gaussian", "pareto"} },
		"format":    func() []string { return []string{"html", "md", "json", "csv", "text"} },
	} {
		if f := cmd.Flags().Lookup(name); f == nil || name == "format" && cmd.Name() != "report" {
			continue
		}
		// It fails only where the flag is missing, or has a function already.
		_ = cmd.RegisterFlagCompletionFunc(name, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return values(), cobra.ShellCompDirectiveDefault
		})
	}
}

// machineNames are those of david's own catalogue of prices.
func machineNames() []string {
	c, err := price.Default()
	if err != nil {
		return nil
	}
	return c.Names()
}

// experimentNames are those in david's folder, where that can be trusted; latest among them where that is a name.
func (a *app) experimentNames(latest bool) (names []string) {
	dir, err := home.Trust(a.home)
	if err != nil {
		return nil
	}
	list, err := result.List(dir)
	if err != nil {
		return nil
	}
	if latest && len(list) > 0 {
		names = append(names, "latest")
	}
	for _, s := range list {
		names = append(names, s.ID)
	}
	return names
}

// meant says which command or flag a mistyped one may have been: "" where none is near.
func meant(name string, known []string, dashes string) string {
	near := nearest(name, known, 2)
	if len(name) < 5 { // two letters of four make another word, unless they are swapped
		one := nearest(name, known, 1)
		near = slices.DeleteFunc(near, func(k string) bool { return !slices.Contains(one, k) && letters(k) != letters(name) })
	}
	if len(near) == 0 || len(near) > 3 {
		return ""
	}
	return " (did you mean " + dashes + strings.Join(near, " or "+dashes) + "?)"
}

// nearest are those that differ from a name by so many letters at most, or begin with it.
func nearest(name string, known []string, letters int) []string {
	all := &cobra.Command{SuggestionsMinimumDistance: letters}
	for _, k := range known {
		all.AddCommand(&cobra.Command{Use: k, Run: func(*cobra.Command, []string) {}})
	}
	return all.SuggestionsFor(name)
}

// letters are those of a word in the alphabet's order.
func letters(word string) string {
	sorted := []byte(word)
	slices.Sort(sorted)
	return string(sorted)
}

var unknownFlag = regexp.MustCompile(`^unknown flag: --([a-z0-9-]+)$`)

// flagError is what is said of flags that cannot be read.
func flagError(cmd *cobra.Command, err error) error {
	if err.Error() == "flag needs an argument: 'h' in -h" {
		return usage("-h is the server's host here, as with mysql; for help: %s --help", cmd.CommandPath())
	}
	if bad := new(pflag.InvalidValueError); errors.As(err, &bad) {
		return usage("--%s %s: %s; see: %s --help", bad.GetFlag().Name, bad.GetValue(), takes(bad.GetFlag(), bad.Unwrap()), cmd.CommandPath())
	}
	suggestion := ""
	if m := unknownFlag.FindStringSubmatch(err.Error()); m != nil {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				known = append(known, f.Name)
			}
		})
		suggestion = meant(m[1], known, "--")
	}
	return usage("%w%s; see: %s --help", err, suggestion, cmd.CommandPath())
}

// takes says what a flag takes, where its value could not be read; what david's own flags say of it stays.
func takes(f *pflag.Flag, cause error) string {
	what, known := map[string]string{"int": "a whole number", "int64": "a whole number", "uint64": "a whole number",
		"float64": "a number", "duration": "a time, as 30s or 5m", "bool": "true or false"}[f.Value.Type()]
	if number := new(strconv.NumError); known && (errors.As(cause, &number) || strings.HasPrefix(cause.Error(), "time: ")) {
		if _, rows := f.Value.(rowsValue); rows {
			what = "a number of rows, as 100000 or 1M"
		}
		return "give " + what
	}
	return cause.Error()
}

// unknownCommand is what is said of a command that there is not.
func unknownCommand(cmd *cobra.Command, name string) error {
	var known []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			known = append(known, c.Name())
		}
	}
	return usage("unknown command %q%s; see: %s --help", name, meant(name, known, ""), cmd.CommandPath())
}
