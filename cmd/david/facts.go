package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"david/internal/host"
	"david/internal/mycnf"
	"david/internal/server"
)

// factsDocument is what david facts --json prints.
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
			f, err := host.Read(cmd.Context(), existing(a.home))
			if err != nil {
				return err
			}
			doc := factsDocument{f, server.List(cmd.Context(), a.home)}
			if asJSON {
				return a.printJSON(doc)
			}
			return printFacts(a.out, doc)
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

// existing is dir, or the nearest folder above it that is there: facts must not create david's folder.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

func printFacts(out io.Writer, d factsDocument) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("system", "%s, kernel %s, %s%s", d.OS, d.Kernel, d.Arch, prefixed(", ", d.Virt))
	row("CPUs", "%d online, %.4g usable, %s", d.CPU.Online, d.CPU.Usable, d.CPU.Model)
	row("memory", "%s in all, %s available, limit %s, swap %s", size(d.Memory.Total), size(d.Memory.Available), size(d.Memory.Limit), size(d.Memory.Swap))
	row("cgroup", "%s %s, memory limit %s, CPU limit %s", d.Cgroup.Version, d.Cgroup.Path, limit(d.Cgroup.MemoryLimit), cpuLimit(d.Cgroup.CPULimit))
	row("david's data", "%s on %s (%s, %s), %s free of %s, reflink: %s", d.Data.Path, d.Data.Device, d.Data.Type,
		strings.Join(d.Data.Options, ","), size(d.Data.Free), size(d.Data.Size), yesNo(d.Data.Reflink))
	for _, disk := range d.Disks {
		row("disk "+disk.Name, "%s, %s, scheduler %s, write cache: %s, read-ahead %s", size(disk.Size), kind(disk), disk.Scheduler, orNone(disk.WriteCache), size(disk.ReadAhead))
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

func size(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n), -1
	for v >= unit && i < 4 {
		v, i = v/unit, i+1
	}
	return fmt.Sprintf("%.4g %s", v, []string{"KiB", "MiB", "GiB", "TiB", "PiB"}[i])
}

func limit(n int64) string {
	if n == 0 {
		return "none"
	}
	return size(n)
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

// flavourName is the flavour as its makers write it.
func flavourName(f mycnf.Flavour) string {
	switch f {
	case mycnf.MariaDB:
		return "MariaDB"
	case mycnf.Percona:
		return "Percona Server"
	}
	return "MySQL"
}
