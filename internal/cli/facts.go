package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"david/internal/host"
	"david/internal/server"
)

// factsDocument holds the output of david facts --json.
type factsDocument struct {
	host.Facts
	Servers []server.Binary `json:"servers"`
}

func (a *app) factsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "facts",
		Short: "Show what this machine is: CPUs, memory, limits, disks, kernel settings, servers",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := host.Read(cmd.Context(), a.home)
			if err != nil {
				return err
			}
			doc := factsDocument{f, server.List(cmd.Context(), a.home)}
			if asJSON {
				return a.printJSON(doc)
			}
			return a.fit(func(out io.Writer) error { return printFacts(out, doc) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// printJSON prints one document.
func (a *app) printJSON(doc any) error {
	enc := json.NewEncoder(a.out)
	enc.SetIndent("", "  ")
	return enc.Encode(doc)
}

func printFacts(out io.Writer, d factsDocument) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("system", "%s, kernel %s, %s%s", d.OS, d.Kernel, d.Arch, prefixed(", ", d.Virt))
	row("CPUs", "%d online, %.4g usable, %s", d.CPU.Online, d.CPU.Usable, d.CPU.Model)
	row("memory", "%s in all, %s available, limit %s, swap %s", host.Size(d.Memory.Total), host.Size(d.Memory.Available), host.Size(d.Memory.Limit), host.Size(d.Memory.Swap))
	row("cgroup", "%s %s, memory limit %s, CPU limit %s", d.Cgroup.Version, d.Cgroup.Path, limit(d.Cgroup.MemoryLimit), cpuLimit(d.Cgroup.CPULimit))
	row("david's data", "%s on %s (%s, %s), %s free of %s, reflink: %s", d.Data.Path, d.Data.Device, d.Data.Type,
		strings.Join(d.Data.Options, ","), host.Size(d.Data.Free), host.Size(d.Data.Size), yesNo(d.Data.Reflink))
	for _, disk := range d.Disks {
		row("disk "+disk.Name, "%s, %s, scheduler %s, write cache: %s, read-ahead %s", host.Size(disk.Size), kind(disk), disk.Scheduler, orNone(disk.WriteCache), host.Size(disk.ReadAhead))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Kernels)) {
		row(name, "%s", d.Kernels[name])
	}
	for _, s := range d.Servers {
		row("server", "%s %s, %s", s.Flavour, s.Version, s.Path)
	}
	if len(d.Servers) == 0 {
		row("server", "none found; get one with: david server install mysql")
	}
	for _, u := range d.Unknown {
		row("unknown", "%s", u)
	}
	return w.Flush()
}

func limit(n int64) string {
	if n == 0 {
		return "none"
	}
	return host.Size(n)
}

func cpuLimit(c float64) string {
	if c == 0 {
		return "none"
	}
	return fmt.Sprintf("%.4g CPUs", c)
}

func kind(d host.Disk) string {
	if d.Rotational {
		return "rotating (says the kernel; of virtual disks that means nothing)"
	}
	return "flash or virtual"
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func orNone(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}
