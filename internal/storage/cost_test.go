package storage

import (
	"strings"
	"testing"

	"david/internal/price"
)

func TestExpected(t *testing.T) {
	for l, want := range map[Layout]string{{Stripe, 4}: "stripe4: 4x the reads, 4x the writes of one volume", {RAID10, 4}: "raid10x4: 4x the reads, 2x the writes of one volume",
		{RAIDZ1, 4}: "raidz4: 1.33x the reads, 2.64x the writes of one volume, by no load of a database measured", {RAIDZ2, 4}: "raidz2x4: 2x the reads, 1.76x the writes of one volume, by no load of a database measured"} {
		if got := l.Expected(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestBargain: what several volumes cost, and one that gives the same, as study P1 counts them.
func TestBargain(t *testing.T) {
	each := Each{5000, 200 << 30}
	for n, want := range map[int]string{
		4: "what US$32.00 of 4 volumes gives (e2e-volume), US$32.00? of one would (e2e-volume-large)",
		1: "US$8.00 of one volume (e2e-volume)",
	} {
		if got := each.Bargain(catalogue(t, ""), n); got != want {
			t.Errorf("%d: %s\nwant %s", n, got, want)
		}
	}
	if o, err := each.Cheapest(catalogue(t, "EC2"), 3); err != nil || o.Volumes != 3 || o.EachIOPS < 5000 || o.EachGiB < 200 {
		t.Errorf("%+v, %v", o, err)
	}
	for text, e := range map[string]Each{
		"not priced: no volume of the catalogue is priced that gives 4,000,000,000 IOPS on 1 GiB": {4e9, 1 << 30},
		"no one volume of the catalogue does":                                                     {5000, 200 << 30},
	} {
		c := catalogue(t, "")
		if e.IOPS == 5000 { // only the small one is known
			c.Volumes = nil
			for _, v := range catalogue(t, "").Volumes {
				if v.Name == "e2e-volume" {
					c.Volumes = []price.Volume{v}
				}
			}
		}
		if got := e.Bargain(c, 4); !strings.Contains(got, text) {
			t.Errorf("%s\nwant %s", got, text)
		}
	}
}
