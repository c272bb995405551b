package storage

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// prefix returns what stands before the number of volumes in a layout's short name.
func (k Kind) prefix() string {
	switch k {
	case One, Stripe:
		return string(k)
	case RAIDZ1:
		return "raidz"
	}
	return string(k) + "x"
}

// String writes the short name that ParseLayouts reads: one, stripe4, raid10x4, raidz4, raidz2x6, ceph3x3.
func (l Layout) String() string {
	if l.Kind == One {
		return string(One)
	}
	return l.Kind.prefix() + strconv.Itoa(l.N)
}

// ParseLayouts reads a list of short names with commas between them, as in one,stripe4,raid10x4,raidz4. Each
// may stand there once. An error names the one that is wrong, and what it could be where it is to be measured: Ceph's are planned only, but for
// ceph-rbd, an image of a cluster that is there, which is no layout of volumes and not read here.
func ParseLayouts(text string) ([]Layout, error) {
	var list []Layout
	for name := range strings.SplitSeq(text, ",") {
		l, err := parseLayout(strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		if slices.Contains(list, l) {
			return nil, fmt.Errorf("%s stands there twice", l)
		}
		list = append(list, l)
	}
	return list, nil
}

func parseLayout(name string) (Layout, error) {
	if name == "" {
		return Layout{}, errors.New("a layout is empty: give names with commas between them, as in one,stripe4,raid10x4,raidz4")
	}
	if name == string(RAIDZ2) {
		return Layout{}, errors.New("raidz2: for RAIDZ2 give the number of volumes as well, as in raidz2x4; RAIDZ1 of two is a mirror: raid10x2")
	}
	for _, r := range Rules() {
		l := Layout{Kind: r.Kind, N: 1}
		if rest, ok := strings.CutPrefix(name, r.Kind.prefix()); ok && r.Kind != One {
			l.N, _ = strconv.Atoi(rest) // what is no number does not come back as the same name
		}
		if l.String() == name {
			return l, l.check(r)
		}
	}
	return Layout{}, fmt.Errorf("%q is no layout: want one, stripeN, raid10xN, raidzN or raidz2xN, with N volumes, or ceph-rbd", name)
}

// check holds the number of volumes against the rule.
func (l Layout) check(r Rule) error {
	switch {
	case l.N < r.Least || l.N > r.Most:
		return fmt.Errorf("%s: %s takes %d to %d volumes", l, r.Title, r.Least, r.Most)
	case l.N%r.Step != 0:
		return fmt.Errorf("%s: %s takes pairs of volumes: give an even number", l, r.Title)
	}
	return nil
}

// ParseVolume reads what one volume may do, as in 5000iops: whole operations a second, reads and writes
// together.
func ParseVolume(text string) (iops float64, err error) {
	number, ok := strings.CutSuffix(text, "iops")
	if !ok {
		return 0, fmt.Errorf("%q: give operations per second, as in 5000iops", text)
	}
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q: give whole operations per second, 1iops to %diops", text, int64(math.MaxUint32))
	}
	return float64(n), nil
}
