package storage

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestParseLayouts(t *testing.T) {
	got, err := ParseLayouts("one, stripe4,raid10x4,raidz4,raidz2x6,ceph2x3,ceph3x5")
	want := []Layout{{One, 1}, {Stripe, 4}, {RAID10, 4}, {RAIDZ1, 4}, {RAIDZ2, 6}, {Ceph2, 3}, {Ceph3, 5}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for text, want := range map[string]string{
		"":                           "a layout is empty",
		"one,":                       "a layout is empty",
		"one,,stripe4":               "a layout is empty",
		"one,stripe4,one":            "one stands there twice",
		"stripe":                     "is no layout",
		"stripe4x":                   "is no layout",
		"stripe04":                   "is no layout",
		"stripe+4":                   "is no layout",
		"stripe-4":                   "2 to 16 volumes",
		"stripe99999999999999999999": "is no layout",
		"STRIPE4":                    "is no layout",
		"one1":                       "is no layout",
		"raid5x4":                    "is no layout",
		"raid104":                    "is no layout",
		"stripe1":                    "stripe takes 2 to 16 volumes",
		"stripe17":                   "2 to 16 volumes",
		"raid10x0":                   "2 to 16 volumes",
		"raid10x5":                   "give an even number",
		"raidz2":                     "as in raidz2x4",
		"raidz10":                    "RAIDZ1 takes 3 to 9 volumes",
		"raidz2x3":                   "RAIDZ2 takes 4 to 9 volumes",
		"ceph3x2":                    "3 to 16 volumes",
	} {
		if got, err := ParseLayouts(text); err == nil || !strings.Contains(err.Error(), want) || got != nil {
			t.Errorf("%q: %v, %v, want %q", text, got, err, want)
		}
	}
}

func TestParseVolume(t *testing.T) {
	for text, want := range map[string]float64{"5000iops": 5000, "1iops": 1, "4294967295iops": math.MaxUint32} {
		if got, err := ParseVolume(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "iops", "5000", "5000 iops", "0iops", "-1iops", "+1iops", "1.5iops", "NaNiops", "1e3iops", "4294967296iops", "5_000iops", "5000IOPS", "5000iops,"} {
		if got, err := ParseVolume(text); err == nil || !strings.Contains(err.Error(), "operations per second") {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// What is read is written as it was, and can be built by its rule.
func FuzzParseLayouts(f *testing.F) {
	for _, text := range []string{"one", "one,stripe4,raid10x4,raidz4", "raidz2x6, ceph3x3", "stripe16,stripe", "raid10x3", ",", "stripe\u06604"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseLayouts(text)
		if err != nil {
			return
		}
		var names []string
		for _, l := range list {
			r, known := l.rule()
			if !known || l.check(r) != nil || len(l.Recipes(100)) == 0 {
				t.Errorf("%q: %+v", text, l)
			}
			names = append(names, l.String())
		}
		again, err := ParseLayouts(strings.Join(names, ","))
		if err != nil || !slices.Equal(again, list) {
			t.Errorf("%q: %v, then %v, %v", text, list, again, err)
		}
	})
}

func FuzzParseVolume(f *testing.F) {
	for _, text := range []string{"5000iops", "0iops", "iops", "1e9iops"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := ParseVolume(text); err == nil && !(got >= 1 && got <= math.MaxUint32 && got == math.Trunc(got)) {
			t.Errorf("%q: %v", text, got)
		}
	})
}
