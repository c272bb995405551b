package cli

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"david/internal/result"
)

// benchFlags holds the options of david bench.
type benchFlags struct {
	loadFlags
	capFlags
	serverFlags
	pod                           podFlags
	server, cnf                   string
	slo                           string
	sets                          []string
	repeat                        int
	json, force, keep, tcp, fresh bool
	steady, lightSpeed            bool
	// How david's own Jobs in a cluster are told what to do.
	relay bool   // the record goes to the log
	group string // names the clients that belong together
	node  string // where the server's node tells what it does
}

func (f *benchFlags) add(fs *pflag.FlagSet) {
	f.loadFlags.add(fs, 60*time.Second, 15*time.Second)
	f.capFlags.add(fs, capMemory)
	fs.StringVar(&f.server, "server", "auto", "auto, mysql, mariadb, a version as mysql:9.7, or the PATH of a server binary: the sandbox to measure")
	fs.StringVar(&f.cnf, "cnf", "", "a my.cnf for the sandbox")
	fs.StringArrayVar(&f.sets, "set", nil, "VAR=VALUE for the sandbox, after --cnf; repeatable")
	f.serverFlags.add(fs, "a remote server: user@tcp(host:3306)/ or mysql://user@host:3306/; "+passwordElsewhere,
		"an option file whose [client] group names a remote server, as MySQL's clients read it (~/.my.cnf)")
	f.pod.add(fs)
	fs.BoolVar(&f.relay, "relay", false, "print the record as lines for the log of a pod")
	fs.StringVar(&f.group, "crew", "", "the name of the clients that belong together")
	fs.StringVar(&f.node, "node", "", "the address at which david network node runs on the server's node")
	unlisted(fs, "relay", "crew", "node")
	fs.BoolVar(&f.tcp, "tcp", false, "sandbox: drive the load over TCP on 127.0.0.1 instead of the unix socket")
	fs.StringVar(&f.slo, "slo", "", "look for the highest rate of an open loop that keeps a percentile of the latency, as in p99=20ms; with 32 threads unless --threads is given")
	fs.BoolVar(&f.steady, "steady", false, steadyHelp)
	fs.BoolVar(&f.lightSpeed, "light-speed", false, "sandbox: measure beside it, block by block, the same configuration with durability off and everything in memory: an unsafe upper limit, to say how near to it the server comes")
	fs.IntVar(&f.repeat, "repeat", 1, "trials of each thread count")
	fs.BoolVar(&f.fresh, "fresh", false, "sandbox: begin anew, also where the same command was interrupted")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	fs.BoolVar(&f.force, "force", false, "remote, pod: replace a schema of the workload's name that david did not make")
	fs.BoolVar(&f.keep, "keep", false, "remote, pod: leave the schema david made for the next run")
}

// check refuses flags that do not go together.
func (f benchFlags) check(cmd *cobra.Command, remote bool) error {
	changed := cmd.Flags().Changed
	if f.repeat < 1 {
		return usage("--repeat %d: at least 1", f.repeat)
	}
	if f.time == 0 {
		return usage("--time 0s: measure at least 1s")
	}
	if err := f.pod.check(cmd.Flags(), f); err != nil {
		return err
	}
	if f.slo != "" && (f.rate != 0 || f.repeat != 1 || strings.Contains(f.threads, ",")) {
		return usage("--slo looks for the rate itself, with one number of threads: leave out --rate, --repeat and lists of --threads")
	}
	if f.lightSpeed && (f.slo != "" || f.rate != 0) {
		return usage("--light-speed compares the most the server does with the most it could do: leave out --rate and --slo")
	}
	if remote && f.lightSpeed {
		return usage("--light-speed is for sandboxes: david turns off the durability of no server that is not its own")
	}
	if remote && (f.cnf != "" || len(f.sets) > 0 || changed("server")) {
		return usage("a remote server is measured as it is: --server, --cnf and --set are for sandboxes")
	}
	if remote && f.given() {
		return usage("--cpus, --memory, --iops and --bandwidth are for sandboxes: david caps no server that is not its own")
	}
	if remote && (f.tcp || f.noVolume || f.fresh) {
		return usage("--tcp, --no-volume and --fresh are for sandboxes")
	}
	if !remote && (f.force || f.keep) {
		return usage("--force and --keep are for a remote server (--dsn, --defaults-file or --pod)")
	}
	if !remote && changed(deadlineFlag) {
		return usage("--%s is for a remote server (--dsn, --defaults-file or --pod)", deadlineFlag)
	}
	return nil
}

// sloThreads is the default of a search for a rate: with too few, transactions wait for a thread while the
// server could do more.
const sloThreads = "32"

// design lays out a bench: so many trials of each load, or a search for a rate.
func (f benchFlags) design() (result.Design, error) {
	d := result.Design{Blocks: f.repeat, Steady: f.steady}
	if f.lightSpeed {
		d.Control = measured
	}
	if f.slo == "" {
		return d, nil
	}
	goal, err := parseSLO(f.slo)
	d.SLO = &goal
	return d, err
}

// parseSLO reads "p99=20ms".
func parseSLO(text string) (goal result.SLO, err error) {
	percentile, latency, _ := strings.Cut(strings.TrimPrefix(text, "p"), "=")
	goal.Percentile, err = strconv.ParseFloat(percentile, 64)
	d, err2 := time.ParseDuration(latency)
	goal.Ms = float64(d) / float64(time.Millisecond)
	if err != nil || err2 != nil || !(goal.Percentile >= 1 && goal.Percentile < 100) || goal.Ms <= 0 || goal.Ms > 100_000 {
		return goal, usage("--slo %s: give a percentile from 1 to below 100 and a latency up to 100s, as in p99=20ms or p95=1.5ms", text)
	}
	return goal, nil
}
