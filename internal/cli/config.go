package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"david/internal/experiment"
	"david/internal/home"
	"david/internal/lab"
	"david/internal/plain"
	"david/internal/server"
)

// setting is something that the config file can say once and for all. What the environment says goes before the file,
// a flag before both.
type setting struct {
	Key     string `json:"key"`
	Value   string `json:"value"`
	From    string `json:"from"` // default, file, environment, flag
	Where   string `json:"where,omitempty"`
	env     string // the variable; "" for none
	flag    string // the flag; "" for none
	boolean bool
	about   string
}

// settings are all there are, with their defaults.
func settings() []setting {
	return []setting{
		{Key: "home", env: "DAVID_HOME", about: "where david's folder is"},
		{Key: "memory", env: memoryVariable, Value: "64M", about: "how much memory david may take to show a record"},
		{Key: "max-steal", env: lab.StealVariable, about: "the share of CPU time that other guests may take in a trial"},
		{Key: "beside", env: experiment.BesideVariable, about: "the user whose measurement david does not wait for"},
		{Key: "server", flag: "server", Value: "auto", about: "the server of sandboxes"},
		{Key: "quiet", flag: "quiet", Value: "false", boolean: true, about: "no progress and no remarks"},
		{Key: "no-color", flag: "no-color", env: "NO_COLOR", Value: "false", boolean: true, about: "no colours"},
	}
}

// configPath says where the config file is; "" for a user without a home, who has none: a path that is relative would be
// that of whoever owns the working directory.
func configPath(env func(string) string) string {
	dir, home := env("XDG_CONFIG_HOME"), env("HOME")
	switch {
	case filepath.IsAbs(dir): // as the XDG base directory specification says
	case filepath.IsAbs(home):
		dir = filepath.Join(home, ".config")
	default:
		return ""
	}
	return filepath.Join(dir, "david", "config.yaml")
}

// longestConfig bounds the file, in bytes.
const longestConfig = 64 << 10

// configured is what the config file says: values by their keys, each with its line.
type configured struct {
	path   string
	values map[string]string
	lines  map[string]int
}

// readConfig reads the config file, where there is one. What it does not know, and what nobody but the user could not
// have written, is an error.
func readConfig(env func(string) string) (c configured, err error) {
	c = configured{path: configPath(env), values: map[string]string{}, lines: map[string]int{}}
	// A folder that this user may not look into is not this user's: root's, where sudo -u left HOME as it was. That of
	// a service may be no folder at all, as /dev/null.
	_, err = os.Lstat(c.path)
	if c.path == "" || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) {
		return c, nil
	}
	text, err := home.ReadOwn(c.path, longestConfig)
	if err != nil {
		return c, usage("cannot read the config file: %w", err)
	}
	var doc yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&doc); err != nil {
		if len(bytes.TrimSpace(text)) == 0 {
			return c, nil
		}
		return c, usage("cannot read %s: %w", c.path, err)
	}
	return c, c.take(doc)
}

func (c *configured) take(doc yaml.Node) error {
	if len(doc.Content) == 0 {
		return nil
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Value == "" { // comments alone
		return nil
	}
	if root.Kind != yaml.MappingNode {
		return usage("%s:%d: want keys with values, as server: mysql:9.7", c.path, root.Line)
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if err := c.takeOne(root.Content[i], root.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (c *configured) takeOne(key, value *yaml.Node) error {
	known := settings()
	i := slices.IndexFunc(known, func(s setting) bool { return s.Key == key.Value })
	_, twice := c.values[key.Value]
	var names []string
	for _, s := range known {
		names = append(names, s.Key)
	}
	switch {
	case i < 0:
		return usage("%s:%d: david knows no key %q%s; it knows %s", c.path, key.Line, key.Value, meant(key.Value, names, ""), strings.Join(names, ", "))
	case twice:
		return usage("%s:%d: %s stands twice", c.path, key.Line, key.Value)
	case value.Kind != yaml.ScalarNode || value.Value == "":
		return usage("%s:%d: %s: give one value", c.path, value.Line, key.Value)
	}
	if _, err := strconv.ParseBool(value.Value); known[i].boolean && err != nil {
		return usage("%s:%d: %s: %q is neither true nor false", c.path, value.Line, key.Value, value.Value)
	}
	c.values[key.Value], c.lines[key.Value] = value.Value, key.Line
	return nil
}

// over is an environment upon the file: what it has not, the file may say.
func (c configured) over(env func(string) string) func(string) string {
	return func(name string) string {
		if text := env(name); text != "" {
			return text
		}
		for _, s := range settings() {
			if s.env == name && name != "" && !s.boolean {
				return c.values[s.Key]
			}
		}
		return ""
	}
}

// configure reads the config file, and has it stand behind the environment.
func (a *app) configure() error {
	a.own = a.env
	c, err := readConfig(a.env)
	if err != nil {
		return err
	}
	a.config, a.env = c, c.over(a.env)
	if a.configHome {
		a.home = server.Home(a.env)
	}
	return nil
}

// flagsOf gives flags that were not given the values of the config file.
func (a *app) flagsOf(cmd *cobra.Command) error {
	for _, s := range settings() {
		value, there := a.config.values[s.Key]
		flag := cmd.Flags().Lookup(s.flag)
		if s.flag == "" || !there || flag == nil || flag.Changed {
			continue
		}
		remote := slices.ContainsFunc(append(serverNames(), "pod", "image"), cmd.Flags().Changed)
		if s.flag == "server" && (flag.DefValue != s.Value || remote) { // it is another question there
			continue
		}
		if err := flag.Value.Set(value); err != nil {
			return usage("%s:%d: %s: %w", a.config.path, a.config.lines[s.Key], s.Key, err)
		}
	}
	return nil
}

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Say what the config file, the environment and the flags set", Args: onlyCommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	var asJSON bool
	show := &cobra.Command{
		Use:   "show",
		Short: "Show every setting, its value, and where that comes from: default, file, environment or flag",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list := a.settled(cmd)
			if asJSON {
				return a.printJSON(struct {
					File     string    `json:"file"`
					Settings []setting `json:"settings"`
				}{a.config.path, list})
			}
			return a.fit(func(out io.Writer) error { return printOrigins(out, list) })
		},
	}
	show.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	cmd.AddCommand(show)
	return cmd
}

func printOrigins(out io.Writer, list []setting) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "KEY\tVALUE\tFROM\tWHAT IT IS")
	for _, s := range list {
		from := s.From
		if s.Where != "" {
			from += " " + s.Where
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.Key, plain.Line(s.Value), plain.Line(from), s.about)
	}
	return w.Flush()
}

// settled says what each setting is, and who said so.
func (a *app) settled(cmd *cobra.Command) (list []setting) {
	for _, s := range settings() {
		s.From = "default"
		if s.Key == "home" {
			s.Value = server.Home(a.own)
		}
		if value, ok := a.config.values[s.Key]; ok {
			s.Value, s.From, s.Where = value, "file", fmt.Sprintf("%s:%d", a.config.path, a.config.lines[s.Key])
		}
		if value := a.own(s.env); s.env != "" && value != "" {
			s.Value, s.From, s.Where = value, "environment", s.env
			if s.boolean { // NO_COLOR counts whatever it is
				s.Value = "true"
			}
		}
		if flag := cmd.Flags().Lookup(s.flag); s.flag != "" && flag != nil && flag.Changed {
			s.Value, s.From, s.Where = flag.Value.String(), "flag", "--"+s.flag
		}
		list = append(list, s)
	}
	return list
}
