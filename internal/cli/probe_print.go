package cli

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"david/internal/host"
	"david/internal/result"
)

// printLimits prints every figure. Kept limits were measured by an earlier david.
func (a *app) printLimits(l result.Limits, kept bool) error {
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	when := "now"
	if kept {
		when = age(time.Since(l.Measured)) + " ago (--fresh measures again)"
	}
	fmt.Fprintf(w, "measured\t%s, in %.0f s; caps: %s\n", when, l.Seconds, l.Caps.Text())
	fmt.Fprintf(w, "device\t%s\n", deviceText(l))
	printSyncs(w, l.Syncs)
	printIO(w, l.IO)
	printMachine(w, l.Machine)
	if l.Burst != nil {
		fmt.Fprintf(w, "\nsustained\t%s\n", burstText(*l.Burst))
	}
	for _, n := range l.Notes {
		fmt.Fprintf(w, "note\t%s\n", n)
	}
	if len(l.IO) > 0 && l.IO[0].IOPS.Rounds > 1 {
		fmt.Fprintf(w, "\nEach figure is the median of %s, with the least and the most of them.\n", pluralise(l.IO[0].IOPS.Rounds, "round"))
	}
	return w.Flush()
}

// age is a time span as people say it.
func age(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.0f h", d.Hours())
}

func deviceText(l result.Limits) string {
	d := l.Device
	if len(l.IO) == 0 {
		return "not measured"
	}
	where := d.Folder
	if where == "" {
		where = "the data of sandboxes: " + d.Layout
	}
	text := fmt.Sprintf("%s; %s on %s", where, d.Filesystem, d.Source)
	if d.Disk != "" {
		text += ", disk " + d.Disk
	}
	if !d.Direct {
		return text + ", no direct I/O"
	}
	return text + ", direct I/O"
}

func printSyncs(w io.Writer, syncs []result.SyncLimit) {
	if len(syncs) == 0 {
		return
	}
	fmt.Fprintln(w, "\nfdatasync after\tp50 us\tp99 us\tmean us\tdevice writes\tkernel CPU us")
	for _, s := range syncs {
		fmt.Fprintf(w, "%s of %s\t%s\t%s\t%s\t%s\t%s\n", s.Way, host.Size(int64(s.Bytes)), figureText(s.P50), figureText(s.P99), figureText(s.Mean),
			figureOr(s.Writes), figureOr(s.KernelCPU))
	}
}

func figureOr(f *result.Figure) string {
	if f == nil {
		return "unknown"
	}
	return figureText(*f)
}

func printIO(w io.Writer, list []result.IOLimit) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(w, "\nI/O\toperations/s\tMB/s")
	names := map[string]string{result.RandomRead: "random read", result.RandomWrite: "random write", result.Read: "sequential read", result.Write: "sequential write"}
	for _, i := range list {
		fmt.Fprintf(w, "%s, %s, depth %d\t%s\t%s\n", names[i.Way], host.Size(int64(i.Bytes)), i.Depth, figureText(i.IOPS), figureText(i.MB))
	}
}

func printMachine(w io.Writer, m result.Machine) {
	fmt.Fprintf(w, "\nCPU\tone thread\t%s\n", pluralise(m.CPUs, "thread"))
	fmt.Fprintf(w, "integer, 10^6 rounds/s\t%s\t%s\n", figureText(m.IntegerOne), figureText(m.IntegerAll))
	fmt.Fprintf(w, "memory, 10^6 loads/s\t%s\t%s\n", figureText(m.MemoryOne), figureText(m.MemoryAll))
	fmt.Fprintf(w, "\nkernel\n")
	fmt.Fprintf(w, "clock (%s), ns\t%s\n", orNone(m.ClockSource), figureText(m.Clock))
	fmt.Fprintf(w, "sleep of 100 us, over by us\tp50 %s\tp99 %s\n", figureText(m.SleepP50), figureText(m.SleepP99))
	other := "one CPU only"
	if m.SwitchOther.Rounds > 0 {
		other = "two CPUs " + figureText(m.SwitchOther)
	}
	fmt.Fprintf(w, "waking a thread, us\tone CPU %s\t%s\n", figureText(m.SwitchSame), other)
}

// figureText is a figure with its spread: "1240 (1190-1300)".
func figureText(f result.Figure) string {
	if f.Rounds < 2 {
		return threeDigits(f.Value)
	}
	return fmt.Sprintf("%s (%s-%s)", threeDigits(f.Value), threeDigits(f.Low), threeDigits(f.High))
}

// threeDigits keeps what a measurement can tell.
func threeDigits(v float64) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Sprint(v)
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-2)
	return fmt.Sprintf("%.*f", digits, math.Round(v/unit)*unit)
}

// burstText says whether the long run slowed down.
func burstText(b result.Burst) string {
	text := fmt.Sprintf("random 16 KiB writes for %d s: %.0f operations/s in the first %d s", b.Seconds, b.First, b.FirstSeconds)
	if b.Empty == 0 {
		return text + ", and they never stayed below 70 % of it: no burst credits were seen to run out"
	}
	return text + fmt.Sprintf("; from second %d on %.0f (%.0f %%): the burst credits are used up, and this is the volume's own speed", b.Empty, b.Then, 100*b.Then/b.First)
}
