package cli

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"david/internal/host"
	"david/internal/mycnf"
)

// The most that a number on the command line may be, where its command knows no less: beyond lies a slip of the keyboard.
const (
	mostNumber  = 1e10
	mostCPUs    = 100_000
	mostRepeats = 1000
	mostPort    = 65535
	mostBytes   = 1 << 60
	mostTime    = 30 * 24 * time.Hour
)

// inBounds refuses numbers that no command can do anything with, of whichever flag: endless ones, no numbers, and those
// above what there may be. What is too little a command says itself.
func inBounds(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if n, e := strconv.Atoi(f.Value.String()); f.Name == "port" && (e != nil || n < 1 || n > mostPort) && err == nil {
			flag := "--port"
			if f.Shorthand != "" {
				flag = "-" + f.Shorthand
			}
			err = usage("%s %s: give a port from 1 to %d", flag, f.Value, mostPort)
		}
		if most, ok := tooMuch(f); ok && err == nil {
			err = usage("--%s %s: give a number that is not above %s", f.Name, f.Value, most)
		}
	})
	return err
}

// tooMuch tells whether a flag's number is beyond the most it may be, and what that is.
func tooMuch(f *pflag.Flag) (most string, ok bool) {
	text := f.Value.String()
	limit := float64(mostNumber)
	switch f.Name {
	case "repeat", "blocks", "clients", "replicas", "kills":
		limit = mostRepeats
	case "cpus", "client-cpus":
		limit = mostCPUs
	case "memory", "size", "data-size", "free-disk", "bandwidth":
		n, err := mycnf.ParseSize(text)
		return host.Size(mostBytes), err == nil && n > mostBytes
	case "client-memory": // as Kubernetes writes sizes
		q, err := resource.ParseQuantity(text)
		return host.Size(mostBytes), err == nil && q.CmpInt64(mostBytes) > 0
	case "seed", "rate": // any; and what sysbench takes (workload.Validate)
		return "", false
	}
	if f.Value.Type() == "duration" {
		d, err := time.ParseDuration(text)
		return mostTime.String(), err == nil && d > mostTime
	}
	x, err := strconv.ParseFloat(text, 64)
	numeric := f.Value.Type() != "string" || f.Name == "cpus" || f.Name == "client-cpus" || f.Name == "iops"
	return fmt.Sprintf("%.0f", limit), numeric && err == nil && (math.IsNaN(x) || math.Abs(x) > limit)
}
