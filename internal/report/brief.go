package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"david/internal/result"
)

// Brief writes the first screen of a measurement: what was found, how sure that is, what it rests on, what was
// written, and what to do next, a sentence each. Text has the rest. files are what was written besides the
// record; "" where nothing was.
func Brief(w io.Writer, d Data, files string) error {
	r := Build(d)
	b := terminal{columns: columns}
	b.headline(r.Headline, func() { b.paragraph(r.Headline.Big + r.Headline.Rest) })
	if len(r.Light) > 0 {
		b.paragraph(r.Light[0])
	}
	if sure := sureLine(d, r.Headline); sure != "" {
		b.labelled("how sure", sure)
	}
	if upon := restsUpon(d); upon != "" {
		b.labelled("rests on", upon)
	}
	b.labelled("written", strings.TrimPrefix(files+"; ", "; ")+"the record "+d.Experiment.ID)
	b.labelled("next", nextLine(d, r.Headline, files))
	return b.flush(w)
}

// labelWidth is that of the longest label, its colon and two blanks.
const labelWidth = len("how sure") + 3

// labelled writes a sentence beside a label, its later lines under its first.
func (b *terminal) labelled(label, sentence string) {
	for i, line := range Wrap(sentence, b.columns-labelWidth) {
		if i == 0 {
			label += ":"
		} else {
			label = ""
		}
		fmt.Fprintf(b, "%-*s%s\n", labelWidth, label, line)
	}
}

// sureLine says what the headline rests on in numbers, what was proved, and what speaks against it.
func sureLine(d Data, h headline) string {
	var parts []string
	for _, part := range []string{h.Sure, provedSafe(d), h.Beside, gatesSaid(d)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "; ")
}

// provedSafe says what a tune proved of what it hands over; "" where nothing was.
func provedSafe(d Data) string {
	if d.Finish == nil {
		return ""
	}
	for _, p := range d.Proofs {
		if p.Arm != d.Finish.Best || !p.OK {
			continue
		}
		text := "proved: memory"
		if t := d.Experiment.Design.Tune; t == nil || len(t.Unlocked) == 0 {
			text += ", durability lock"
			if unflushedToo(d, p) != "" {
				text += " (which leaves a flush of MySQL's open, docs/crash.md)"
			}
		}
		switch {
		case p.Crash == nil:
			return text
		case p.Shared != "":
			return text + "; NOT proved: crashes: " + p.Shared
		}
		return text + ", " + strings.TrimPrefix(CrashLine(*p.Crash), "proved: ")
	}
	return ""
}

// gatesSaid names the gates that failed, those of most runs first; "" of a search for a rate, which learns by them.
func gatesSaid(d Data) string {
	if d.Experiment.Design.SLO != nil || d.Live != nil {
		return ""
	}
	return Gates(d.Trials)
}

// Gates says in how many runs every gate held, or which failed in how many of them.
func Gates(trials []result.Trial) string {
	if failed := failures(trials); failed != "" {
		return fmt.Sprintf("gates failed of %s: %s", plural(len(trials), "run"), failed)
	}
	return fmt.Sprintf("every gate held in %s", plural(len(trials), "run"))
}

// restsUpon says what was measured, on what, and how long.
func restsUpon(d Data) string {
	if d.Live != nil {
		return liveRests(d)
	}
	quoted := Quoted(d)
	var loads []result.Workload
	for _, g := range byWorkload(quoted.Trials) {
		loads = append(loads, g.workload)
	}
	lines := describe(loads)
	if n := len(lines); n > 2 {
		lines = []string{lines[0], fmt.Sprintf("%d workloads more", n-1)}
	}
	server := fmt.Sprintf("%s (%s)", Servers(d), target(d.Experiment))
	return strings.Join(slices.Concat([]string{server}, lines, []string{utilisation(d)}), "; ")
}

// nextLine gives the command to go on with.
func nextLine(d Data, h headline, files string) string {
	show := fmt.Sprintf("`david show %s` has every figure", d.Experiment.ID)
	switch e := d.Experiment; {
	case d.Live != nil:
		return liveNext(d, h)
	case h.Decides != "":
		return h.Decides + "; " + show
	case h.Tone == "invalid":
		return show + " and the gates that failed"
	case h.Tone == "gain" && e.Design.Tune != nil && files != "":
		return "give the server the lines of my.cnf and restart it; " + show
	case e.Kind == result.KindBench && e.Design.SLO == nil:
		return fmt.Sprintf("`david explain %s` says where the time goes; %s", e.ID, show)
	case e.Kind == result.KindRace:
		return "`david tune` looks for something faster, and proves it; " + show
	}
	return show
}
