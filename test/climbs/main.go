// Command climbs follows a command of david from its flags to its report, and counts the calls that leave a
// package, and those of them that climb: that go to a package on a higher floor of docs/architecture.md.
//
//	go run ./test/climbs [-v] [-most N] [METHOD ...]
//
// METHOD is one of internal/cli's app: tune and compare where none is named. Calls of interfaces, function
// values and callbacks are followed to whatever may be called there. Where a command climbs more than N times
// the exit code is 1. The lengths of all functions are said too.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, errs io.Writer) int {
	flags := flag.NewFlagSet("climbs", flag.ContinueOnError)
	flags.SetOutput(errs)
	verbose := flags.Bool("v", false, "list the climbs, and how many calls each package makes of which")
	most := flags.Int("most", 9, "how often a command may climb")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	methods := flags.Args()
	if len(methods) == 0 {
		methods = []string{"tune", "compare"}
	}
	over, err := count(out, methods, *verbose, *most)
	if err == nil {
		err = printLengths(out, ".")
	}
	if err != nil {
		fmt.Fprintf(errs, "climbs: %v\n", err)
		return 1
	}
	if over {
		return 1
	}
	return 0
}

// count prints how often methods leave their package and climb; over is true where one climbs too often.
func count(out io.Writer, methods []string, verbose bool, most int) (over bool, err error) {
	floors, err := readFloors("docs/architecture.md")
	if err != nil {
		return false, err
	}
	p, err := load(".", "david/internal/")
	if err != nil {
		return false, err
	}
	for _, name := range methods {
		root, err := p.method("david/internal/cli", "app", name)
		if err != nil {
			return false, err
		}
		calls, err := p.follow(root, floors)
		if err != nil {
			return false, err
		}
		printCalls(out, name, calls, verbose)
		over = over || climbs(calls) > most
	}
	return over, nil
}

// printCalls prints the counts of a command, and what they consist of.
func printCalls(out io.Writer, name string, calls []call, verbose bool) {
	arrows := map[[2]string]int{}
	for _, c := range calls {
		arrows[[2]string{c.from, c.to}]++
	}
	fmt.Fprintf(out, "%s: %d calls from one package into another, %d arrows; %d calls climb\n", name, len(calls), len(arrows), climbs(calls))
	if !verbose {
		return
	}
	for _, c := range calls {
		if c.climbs {
			fmt.Fprintf(out, "  %s: %s -> %s: %s\n", c.at, c.from, c.to, c.callee)
		}
	}
	for _, arrow := range sorted(arrows) {
		fmt.Fprintf(out, "  %4d %s -> %s\n", arrows[arrow], arrow[0], arrow[1])
	}
}

// climbs counts the calls that go up.
func climbs(calls []call) (n int) {
	for _, c := range calls {
		if c.climbs {
			n++
		}
	}
	return n
}
