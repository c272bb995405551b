package mycnf

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// Match tells how a value that a server reports relates to the value it was given.
type Match int

// The ways two values relate.
const (
	Different Match = iota // the server did not take the value
	Rounded                // the server took it and rounded, clipped or completed it in the way it is known to
	Same                   // both say the same
)

// String names the match in lower case.
func (m Match) String() string {
	return [...]string{"different", "rounded", "same"}[m]
}

// MatchValues compares the value wanted for a variable, as written in a my.cnf, with the one that SHOW GLOBAL
// VARIABLES gives: 128M and 134217728, TRUE and ON, 4 and O_DIRECT, 90 and 90.000000, "table,file" and
// "FILE,TABLE" are the same. What the catalogue says of rounding decides between Rounded and Different.
func MatchValues(name, wanted, effective string) Match {
	v := catalogue()[Normalise(name)]
	w, e := strings.TrimSpace(wanted), strings.TrimSpace(effective)
	if v.equal(w, e) {
		return Same
	}
	if slices.Contains(v.Auto, w) || v.rounded(w, e) {
		return Rounded
	}
	return Different
}

// equal tells whether two values mean the same to the server.
func (x Variable) equal(w, e string) bool {
	if strings.EqualFold(w, e) && x.Kind != KindPath && x.Kind != KindString {
		return true
	}
	switch x.Kind {
	case KindPath:
		return w == e || w != "" && e != "" && path.Clean(w) == path.Clean(e)
	case KindString:
		return w == e
	case KindFile:
		return onOff(e) == "ON"
	case KindFlag:
		return x.Reports != "" && onOff(e) == "OFF"
	case KindSet:
		return sameSet(w, e)
	case KindFlags:
		return partOf(w, e)
	case KindEnum:
		return x.number(w, e) || onOff(w) != "" && onOff(w) == onOff(e)
	case KindBool:
		return onOff(w) != "" && onOff(w) == onOff(e) || w == "" && onOff(e) == "ON"
	}
	return sameNumber(w, e) || x.Kind == "" && onOff(w) != "" && onOff(w) == onOff(e)
}

// onOff brings the servers' words for a switch to ON and OFF; "" for others.
func onOff(s string) string {
	switch strings.ToUpper(s) {
	case "ON", "1", "TRUE", "YES":
		return "ON"
	case "OFF", "0", "FALSE", "NO":
		return "OFF"
	}
	return ""
}

// number tells whether w is the number of the enum value e.
func (x Variable) number(w, e string) bool {
	i, err := strconv.Atoi(w)
	return err == nil && i >= 0 && i < len(x.Values) && strings.EqualFold(x.Values[i], e)
}

func sameNumber(w, e string) bool {
	a, errA := parseBytes(w)
	b, errB := parseBytes(e)
	if errA == nil && errB == nil {
		return a == b
	}
	x, errX := strconv.ParseFloat(w, 64)
	y, errY := strconv.ParseFloat(e, 64)
	return errX == nil && errY == nil && x == y
}

func sameSet(w, e string) bool {
	return slices.Equal(words(w), words(e))
}

// partOf tells whether all switches of w stand in e.
func partOf(w, e string) bool {
	all := words(e)
	for _, one := range words(w) {
		if !slices.Contains(all, one) {
			return false
		}
	}
	return w != ""
}

// words splits a list with commas into sorted, upper-case words, each once.
func words(s string) []string {
	var list []string
	for _, w := range strings.Split(s, ",") {
		if w = strings.ToUpper(strings.TrimSpace(w)); w != "" {
			list = append(list, w)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// rounded tells whether the server's known rounding explains the effective value.
func (x Variable) rounded(w, e string) bool {
	a, errA := parseBytes(w)
	b, errB := parseBytes(e)
	if errA != nil || errB != nil || a == 0 || b == 0 {
		return false
	}
	switch {
	case b > a: // a small buffer pool's chunks are small as well, so it never doubles
		return b-a < x.Up && b-a < a
	case x.Clipped:
		return true
	case x.Power:
		return b&(b-1) == 0 && a-b < b
	}
	return a-b < x.Down
}
