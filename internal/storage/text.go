package storage

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"david/internal/plain"
	"david/internal/price"
)

// notes says what must be read with the choices.
func (p Plan) notes() []string {
	notes := []string{
		"IOPS are sums of published limits for operations of 16 KiB, with the bandwidth that they take where the catalogue knows it, bursts not counted; ? marks prices the catalogue calls uncertain, and IOPS that no load of a database was measured to get",
		"RAIDZ reads every disk that a record's data lie on, and writes all its sectors: four disks of 500 IOPS gave 660 reads/s and 1,318 writes/s under ZFS, single runs in an emulated guest, where nobody had the writes synced; synced one by one, as commits are, 288 to 727 writes/s; a stripe of the four gave 1,815 and 1,582, so RAIDZ costs 64 % of the reads; study P1 says about 18 % less than a stripe, and nothing of reads",
		"room is before what a filesystem keeps for itself (ZFS 1/32); of RAIDZ for records of 16 KiB on sectors of 4 KiB, of Ceph 70 % of the disks (study P4)",
		"a provider keeps copies of its volumes already; lost is one that is gone all the same. No layout is a backup",
	}
	if p.has(func(c Choice) bool { return c.Node != "" }) {
		notes = append(notes, "Ceph: the nodes' price is in it; their CPUs and network are not counted (study P4: 10 cores for an NVMe, 10 Gbit/s), nor are the log writes of its own database")
	}
	if m := p.asked.Machine; m != nil && m.IOPS == 0 {
		notes = append(notes, fmt.Sprintf("the catalogue does not know how many IOPS %s lets through: nothing was held against it, and providers do cap machines", m.Name))
	}
	for _, c := range p.Choices {
		for _, n := range c.Notes {
			if !slices.Contains(notes, n) {
				notes = append(notes, n)
			}
		}
	}
	return notes
}

func (p Plan) has(is func(Choice) bool) bool { return slices.ContainsFunc(p.Choices, is) }

// find returns the cheapest of those that fit.
func (p Plan) find(fits func(Choice) bool) (Choice, bool) {
	i := slices.IndexFunc(p.Choices, fits)
	if i < 0 {
		return Choice{}, false
	}
	return p.Choices[i], true
}

// findNear prefers the cheapest of a choice's own provider.
func (p Plan) findNear(c Choice, fits func(Choice) bool) (Choice, bool) {
	if near, found := p.find(func(o Choice) bool { return fits(o) && o.Provider == c.Provider }); found {
		return near, true
	}
	return p.find(fits)
}

// elsewhere names another's provider where it is not the choice's.
func (c Choice) elsewhere(other Choice) string {
	if other.Provider == c.Provider {
		return ""
	}
	return ", at " + other.Provider
}

// Text prints what is cheapest, how sure that is, what it rests on, what it cannot survive and what to do
// next; then the cheapest of each layout. Recipes says how each is made.
func (p Plan) Text(out io.Writer) error {
	for _, line := range p.head() {
		fmt.Fprintln(out, line)
	}
	shown := p.cheapestOfEach()
	if err := p.table(out, shown); err != nil {
		return err
	}
	list(out, "if one volume (of Ceph: one node) is lost:", shown, func(c Choice) string { return c.Lost + c.left() })
	list(out, "bound by the machine:", shown, func(c Choice) string { return c.Cap })
	if len(p.Refused) > 0 {
		fmt.Fprintln(out, "\nnot this way:")
	}
	for _, r := range p.Refused {
		fmt.Fprintf(out, "  %s: %s\n", r.Name, r.Why)
	}
	fmt.Fprintln(out)
	for _, n := range p.shownNotes(shown) {
		fmt.Fprintln(out, n)
	}
	if len(shown) > 0 {
		fmt.Fprintln(out, closing)
	}
	return nil
}

// Recipes prints the commands that make the layouts of Text, to be copied.
func (p Plan) Recipes(out io.Writer) error {
	var text strings.Builder
	recipes(&text, p.cheapestOfEach())
	_, err := io.WriteString(out, text.String())
	return err
}

// closing keeps a server from filling the empty folder that a missing mount leaves.
const closing = "the server must not start without the mount: systemctl edit mysql, [Unit] RequiresMountsFor=MOUNTPOINT (ZFS: After=zfs-mount.service and AssertPathIsMountPoint=MOUNTPOINT; " +
	"Ceph: After=rbdmap.service as well); then chown mysql: MOUNTPOINT"

// head is the five lines that decide.
func (p Plan) head() []string {
	if len(p.Choices) == 0 {
		return []string{fmt.Sprintf("no layout gives %s IOPS (%.0f %% writes) on %s: each refusal says what it would take", price.Number(p.asked.IOPS), 100*p.asked.WriteShare,
			price.GiB(p.asked.Size.GiB())), "next: ask for less, for another machine (--like), or state a rate or prices of your own (--catalogue)"}
	}
	c := p.Choices[0]
	return []string{
		fmt.Sprintf("cheapest: %s: US$%s a month for %s reads/s, %s writes/s, %s at %.0f %% writes, and %s", c.Name, price.Money(c.USDMonth, c.UncertainPrice),
			c.rate(c.IOPS.Reads), c.rate(c.IOPS.Writes), c.rate(c.IOPS.Mix), 100*p.asked.WriteShare, price.GiB(c.UsableGiB)),
		p.bargain(c),
		fmt.Sprintf("how sure: %s; it rests on %s, %s, and on: %s", p.sure(c), c.Source, c.Date, c.Rule),
		p.weakness(c),
		"next: fill in the disks below (lsblk -f: they must be empty), then hold what they give against this: david probe --dir MOUNTPOINT",
	}
}

// bargain sets the price of several volumes beside that of one that gives the same.
func (p Plan) bargain(c Choice) string {
	unlike := func(o Choice) bool { return (o.Layout == One) != (c.Layout == One) }
	other, found := p.findNear(c, unlike)
	gives := fmt.Sprintf("what US$%s of %s gives, ", price.Money(c.USDMonth, c.UncertainPrice), count(c.Volumes))
	switch {
	case c.Layout != One && found:
		return gives + fmt.Sprintf("US$%s of one would%s (%s)", price.Money(other.USDMonth, other.UncertainPrice), c.elsewhere(other), other.Volume)
	case c.Layout != One && p.asked.Survive > 0:
		return gives + "one volume does not at any price: it is lost alone"
	case c.Layout != One:
		return gives + "no one volume of the catalogue does"
	case found:
		return gives + fmt.Sprintf("US$%s of several would%s (%s)", price.Money(other.USDMonth, other.UncertainPrice), c.elsewhere(other), other.Name)
	}
	return gives + "no layout of several does"
}

func count(volumes int) string {
	if volumes == 1 {
		return "one volume"
	}
	return fmt.Sprintf("%d volumes", volumes)
}

func (p Plan) sure(c Choice) string {
	sure, found := p.find(func(o Choice) bool { return o.doubt() == 0 })
	switch {
	case c.doubt() == 0:
		return "published limits added up, nothing measured on it"
	case found:
		return fmt.Sprintf("not very (?); the cheapest of certain figures%s is %s, US$%s", c.elsewhere(sure), sure.Name, price.Money(sure.USDMonth, false))
	}
	return "not very (?), and nothing here has certain figures"
}

func (p Plan) weakness(c Choice) string {
	safer, found := p.findNear(c, func(o Choice) bool { return o.Survives > c.Survives })
	text := fmt.Sprintf("it cannot survive: the loss of %d of its volumes", c.Survives+1)
	if c.Survives == 0 {
		text = "it cannot survive: the loss of any volume; all data are gone with it"
	}
	switch {
	case found:
		return text + fmt.Sprintf("; the cheapest that can: %s, US$%s%s", safer.Name, price.Money(safer.USDMonth, safer.UncertainPrice), c.elsewhere(safer))
	case c.Survives < mostSurvived():
		return text + "; nothing here can"
	}
	return text
}

// rate writes operations a second, with a "?" where no load of a database was measured to get them. What is bought is
// rounded, so that a little less than a whole number is that number.
func (c Choice) rate(x float64) string {
	text := price.Number(x + 1e-6)
	if c.UncertainIOPS {
		text += "?"
	}
	return text
}

func (c Choice) left() string {
	if c.Degraded == nil {
		return ""
	}
	return fmt.Sprintf("; left: %s reads/s, %s writes/s", c.rate(c.Degraded.Reads), c.rate(c.Degraded.Writes))
}

// cheapestOfEach keeps the first choice of each layout.
func (p Plan) cheapestOfEach() (list []Choice) {
	for _, c := range p.Choices {
		if !slices.ContainsFunc(list, func(o Choice) bool { return o.Layout == c.Layout }) {
			list = append(list, c)
		}
	}
	return list
}

func (p Plan) table(out io.Writer, shown []Choice) error {
	if len(shown) == 0 {
		return nil
	}
	fmt.Fprintln(out, "\nthe cheapest of each layout (all: --json):")
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "LAYOUT\tUS$/MONTH\tWITH MACHINE\tREADS/S\tWRITES/S\tAT %.0f %% WRITES\tGIB USABLE\tSURVIVES\tPARTS\n", 100*p.asked.WriteShare)
	for _, c := range shown {
		total := "-"
		if c.WithMachine > 0 {
			total = price.Money(c.WithMachine, c.UncertainPrice)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%.1f\t%d\t%s\n", c.Name, price.Money(c.USDMonth, c.UncertainPrice), total, c.rate(c.IOPS.Reads), c.rate(c.IOPS.Writes),
			c.rate(c.IOPS.Mix), c.UsableGiB, c.Survives, price.Bill(c.Parts))
	}
	return w.Flush()
}

// list prints what is said of each choice, without those of which nothing is.
func list(out io.Writer, title string, shown []Choice, of func(Choice) string) {
	begun := false
	for _, c := range shown {
		text := of(c)
		if text == "" {
			continue
		}
		if !begun {
			fmt.Fprintln(out, "\n"+title)
		}
		begun = true
		fmt.Fprintf(out, "  %s: %s\n", c.Name, text)
	}
}

// shownNotes leaves out those of volumes that are not shown.
func (p Plan) shownNotes(shown []Choice) []string {
	return slices.DeleteFunc(slices.Clone(p.Notes), func(note string) bool {
		of := func(c Choice) bool { return slices.Contains(c.Notes, note) }
		return p.has(of) && !slices.ContainsFunc(shown, of)
	})
}

func recipes(out io.Writer, shown []Choice) {
	for _, c := range shown {
		fmt.Fprintf(out, "\n%s, with %s:\n", c.Name, tools(c.Recipes))
		for _, r := range c.Recipes {
			if r.Note != "" {
				shell(out, fmt.Sprintf("# %s: %s", r.Tool, r.Note))
			}
			for _, command := range r.Commands {
				shell(out, command)
			}
			if r.Tool != c.Recipes[len(c.Recipes)-1].Tool {
				fmt.Fprintln(out, "  # or")
			}
		}
	}
}

// shell writes a line to be copied.
func shell(out io.Writer, line string) {
	fmt.Fprintln(out, strings.Join(plain.Command("  "+line, plain.Columns), "\n"))
}

func tools(recipes []Recipe) string {
	var names []string
	for _, r := range recipes {
		names = append(names, r.Tool)
	}
	return strings.Join(names, " or ")
}
