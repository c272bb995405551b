package report

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"david/internal/result"
	"david/internal/stats"
)

// layoutFixture is the comparison's fixture with its arms on layouts.
func layoutFixture() Data {
	d := compareFixture()
	rate := func(way string, sync bool, iops ...float64) result.FioRate {
		return result.FioRate{Way: way, Bytes: innodbPage, Sync: sync, IOPS: iops}
	}
	for i := range d.Arms {
		l := result.Layout{Name: d.Arms[i].Name, Kind: "one", Volumes: 1, Filesystem: "xfs", Mount: "noatime",
			Fio: []result.FioRate{rate(result.RandomRead, false, 300, 310, 290), rate(result.RandomWrite, false, 300, 300, 300), rate(result.RandomWrite, true, 100, 100, 100)}}
		if i > 0 {
			l.Kind, l.Volumes, l.Tool, l.Filesystem = "stripe", 4, "btrfs", "btrfs"
			l.Fio = []result.FioRate{rate(result.RandomRead, false, 1200, 1250, 1150), rate(result.RandomWrite, false, 1200, 1140, 1260), rate(result.RandomWrite, true, 50, 60, 40)}
		}
		d.Arms[i].Layout = &l
	}
	d.Experiment.Notes = append(d.Experiment.Notes, "raidz4: unavailable here: the kernel has no ZFS")
	return d
}

// TestLayouts: five lines first, then one table, with fio's ratios of rounds and the database's.
func TestLayouts(t *testing.T) {
	d := layoutFixture()
	p := Prices{Month: map[string]string{"control": "8.00"}, Bargain: "cost: what US$32.00 of 4 volumes gives, US$96.00 of one would"}
	var b bytes.Buffer
	if err := Layouts(&b, d, p); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.ReplaceAll(b.String(), "\n"+strings.Repeat(" ", labelWidth), " "), "\n")
	for i, want := range []string{"found:     memory gives 1.5", "cost:      what US$32.00 of 4 volumes gives, US$96.00 of one would",
		"how sure:  intervals of 95 %; fio in 3 rounds, the database in 5 blocks", "measured:  files behind loop devices", "next:      the commands that make it", "", "layout "} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d: %s\nwant %s", i+1, lines[i], want)
		}
	}
	within80(t, b.String())
	for _, want := range []string{"control", " 8.00", "4.00 [", "raidz4: unavailable here: the kernel has no ZFS", "memory: stripe of 4 volumes, btrfs, noatime"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("nothing says %q:\n%s", want, b.String())
		}
	}
	rows := layoutRows(d, p)
	if strings.Contains(b.String(), "never synced") {
		t.Error("a column of what was not measured")
	}
	l := d.Arms[1].Layout
	l.Fio = append([]result.FioRate{{Way: result.RandomWrite, Bytes: innodbPage, Unsynced: true, IOPS: []float64{900, 930, 870}}}, l.Fio...)
	unsynced := layoutRows(d, p)[1]
	if u := unsynced.unsynced(); u.Ratio < 2.9 || u.Ratio > 3.1 || unsynced.writes().Ratio != rows[1].writes().Ratio {
		t.Errorf("unsynced writes %+v, of those that are not %+v", u, unsynced.writes())
	}
	if cells := layoutTable(layoutRows(d, p)); len(cells.Rows[0]) != len(cells.Cols) || cells.Cols[len(cells.Cols)-2].Head != "never synced" {
		t.Errorf("%+v", cells)
	}
	r := rows[1].reads()
	if r.Rounds != 3 || r.Ratio < 3.9 || r.Ratio > 4.1 || !(r.Interval[0] < r.Ratio && r.Ratio < r.Interval[1]) {
		t.Errorf("reads %+v", r)
	}
	if rows[0].writes().Interval != (stats.Interval{}) || rows[0].writes().Ratio != 1 {
		t.Errorf("the first one beside itself: %+v", rows[0].writes())
	}
}

// TestLayoutsBrief: five sentences within 80 columns, with what could not be built here and what it costs; the table is left out.
func TestLayoutsBrief(t *testing.T) {
	d := layoutFixture()
	var b strings.Builder
	if err := LayoutsBrief(&b, d, Prices{Bargain: "cost: what US$32.00 of 4 volumes gives, US$96.00 of one would"}); err != nil {
		t.Fatal(err)
	}
	if n := sentencesOf(t, b.String()); n != 5 {
		t.Errorf("%d sentences:\n%s", n, b.String())
	}
	text := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{"memory gives 1.5", "; cost: what US$32.00 of 4 volumes", "how sure: intervals of 95 %; fio in 3 rounds", "rests on: files behind loop devices",
		"raidz4: unavailable here: the kernel has no ZFS", "written: the record " + d.Experiment.ID, "next: the commands that make it", "`david show " + d.Experiment.ID + "` has"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestLayoutAlone: what one layout gave is said, and not that nothing was faster.
func TestLayoutAlone(t *testing.T) {
	d := layoutFixture()
	d.Arms, d.Trials, d.Experiment.Design = d.Arms[:1], nil, result.Design{}
	var b strings.Builder
	if err := LayoutsBrief(&b, d, Prices{Bargain: "cost: none"}); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); !strings.Contains(text, "control gives 300 reads/s, 300 writes/s") || strings.Contains(text, "faster") {
		t.Error(text)
	}
}

// TestFioAlone: without a server nothing is said of one, but that there was none.
func TestFioAlone(t *testing.T) {
	d := layoutFixture()
	d.Experiment.Workloads, d.Experiment.Server, d.Experiment.Design, d.Trials = nil, result.Server{}, result.Design{}, nil
	for name, write := range map[string]func(io.Writer, Data, Prices) error{"brief": LayoutsBrief, "long": Layouts} {
		var b strings.Builder
		if err := write(&b, d, Prices{Bargain: "cost: none"}); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(b.String()), " ")
		for _, want := range []string{"gives 4.00x its random reads", "fio alone, no database was measured (--fio-only)", "the same without --fio-only"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, b.String())
			}
		}
		if strings.Contains(text, "every gate") {
			t.Errorf("%s: a gate of no run:\n%s", name, b.String())
		}
	}
}

// TestMeasuredOn: an image of a Ceph pool is no file behind a loop device, and is not capped.
func TestMeasuredOn(t *testing.T) {
	d := layoutFixture()
	d.Arms[1].Layout.Ceph = &result.CephPool{Conf: "/etc/ceph/ceph.conf", Pool: "mysql"}
	got := measuredOn(d)
	for _, want := range []string{"files behind loop devices", d.Arms[1].Name + ": an image of the Ceph pool mysql, not capped"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s, without %q", got, want)
		}
	}
	d.Arms = d.Arms[1:2]
	if got := measuredOn(d); strings.Contains(got, "files") {
		t.Error(got)
	}
}

// TestLayoutsJSON: one document, without a number where nothing was measured.
func TestLayoutsJSON(t *testing.T) {
	d := layoutFixture()
	d.Arms[1].Layout.Fio = nil
	d.Trials = nil
	var b bytes.Buffer
	if err := LayoutsJSON(&b, d, Prices{}); err != nil {
		t.Fatal(err)
	}
	var doc layoutDocument
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil || len(doc.Layouts) != len(d.Arms) || len(doc.Says) != 5 {
		t.Fatalf("%v\n%s", err, b.String())
	}
	if len(doc.Layouts[1].Fio) != 0 || doc.Layouts[0].Fio[0].Rounds != 3 {
		t.Errorf("%+v", doc.Layouts)
	}
	if strings.Contains(b.String(), "NaN") {
		t.Error(b.String())
	}
}

// TestShowLayouts: david show tells of the layouts of a comparison's arms, and of none where there are none.
func TestShowLayouts(t *testing.T) {
	var with, without bytes.Buffer
	if err := Text(&with, layoutFixture()); err != nil {
		t.Fatal(err)
	}
	if err := Text(&without, compareFixture()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(with.String(), "writes/s") || strings.Contains(without.String(), "writes/s") {
		t.Error(with.String())
	}
	d := layoutFixture()
	d.Experiment.Workloads, d.Experiment.Server, d.Experiment.Design, d.Trials = nil, result.Server{}, result.Design{}, nil
	var alone bytes.Buffer
	if err := Text(&alone, d); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Layouts: ", "gives 4.00x its random reads", "fio in 3 rounds", "no server: fio alone", "writes/s"} {
		if !strings.Contains(strings.Join(strings.Fields(alone.String()), " "), want) {
			t.Errorf("no %q in\n%s", want, alone.String())
		}
	}
}
