package spec

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"david/internal/result"
)

// PrintPlan lists the trials of a block, how often each is run, and how long all of them take.
func (s Spec) PrintPlan(out io.Writer) error {
	trials := s.Trials()
	perBlock, blocks := 0, trials[len(trials)-1].Block
	for perBlock < len(trials) && trials[perBlock].Block == 1 {
		perBlock++
	}
	fmt.Fprintf(out, "%s: %s of %s, in random order\n\n", s.titled(), plural(blocks, "block"), plural(perBlock, "trial"))
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "arm\tworkload\tthreads\tdata\tcaps\tblocks\ts each\ttime")
	total := 0.0
	for _, t := range trials[:perBlock] {
		all := t.Seconds * float64(blocks)
		total += all
		fmt.Fprintf(w, "%s\t%s\t%d\t%d x %d\t%s\t%d\t%.0f\t%s\n", t.named(s.Control), loadOf(t.Workload), t.Workload.Threads, t.Workload.Tables, t.Workload.TableSize,
			s.capsNamed(t.Arm).Text(), blocks, t.Seconds, seconds(all))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s, %s%s; %.0f s of each trial are for a fresh server. Preparing the data, once, comes on top.%s\n",
		plural(len(trials), "trial"), s.bound(), seconds(total), Overhead, s.planNotes())
	return err
}

// bound says whether the time is an estimate or a limit.
func (s Spec) bound() string {
	if s.Blocks > 0 {
		return "about "
	}
	return "at most "
}

// planNotes says what the number of trials or their time depends on.
func (s Spec) planNotes() string {
	var notes []string
	if s.Precision > 0 {
		notes = append(notes, fmt.Sprintf("It ends sooner when every ratio is known to +-%.3g %%.", float64(s.Precision)*100))
	}
	if s.SkipNoops {
		notes = append(notes, "Arms that turn out to change nothing are left out.")
	}
	if s.Steady {
		notes = append(notes, "Warming up to a steady state takes longer than the warm-up counted here.")
	}
	if len(notes) == 0 {
		return ""
	}
	return "\n" + strings.Join(notes, "\n")
}

func (s Spec) titled() string {
	if s.Title == "" {
		return "experiment"
	}
	return s.Title
}

func (t Planned) named(control string) string {
	switch {
	case t.Twin:
		return t.Arm + " repeated"
	case t.Arm == control:
		return t.Arm + " (control)"
	}
	return t.Arm
}

func loadOf(w result.Workload) string {
	if w.Rate == 0 {
		return w.Name
	}
	return fmt.Sprintf("%s at %.6g/s", w.Name, w.Rate)
}

func (s Spec) capsNamed(arm string) result.Caps {
	for _, a := range s.Arms {
		if a.Name == arm {
			return s.CapsOf(a)
		}
	}
	return result.Caps{}
}

func seconds(s float64) string { return (time.Duration(s) * time.Second).String() }

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
