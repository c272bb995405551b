package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"david/internal/host"
	"david/internal/mycnf"
	"david/internal/result"
)

// none stands where there is no number.
const none = "-"

// number formats x with two digits, and commas between thousands: what sysbench prints, readable.
func number(x float64) string { return commas(strconv.FormatFloat(x, 'f', 2, 64)) }

// round formats x without digits.
func round(x float64) string { return commas(strconv.FormatFloat(x, 'f', 0, 64)) }

func integer(n int64) string { return commas(strconv.FormatInt(n, 10)) }

// times formats a ratio; none of 0.
func times(ratio float64) string {
	if ratio == 0 {
		return none
	}
	return strconv.FormatFloat(ratio, 'f', 2, 64) + "x"
}

// measured formats x, which is 0 where nothing was measured.
func measured(x float64) string {
	if x == 0 {
		return none
	}
	return number(x)
}

func commas(digits string) string {
	whole, fraction, dot := strings.Cut(digits, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if dot {
		whole += "." + fraction
	}
	return sign + whole
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return integer(int64(n)) + " " + noun + "s"
}

// size formats bytes in the greatest binary unit that leaves at least 1.
func size(bytes int64) string {
	x, units := float64(bytes), []string{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"}
	i := 0
	for ; x >= 1024 && i < len(units)-1; i++ {
		x /= 1024
	}
	return trimmed(x, 1) + " " + units[i]
}

// legible returns a value as a my.cnf has it, "17920M", as a size, and any other as it is.
func legible(value string) string {
	if n, err := mycnf.ParseSize(value); err == nil && strings.TrimRight(value, "0123456789") != "" {
		return size(n)
	}
	return value
}

// sized returns the size, as in 128 MiB, of a variable's value that is a whole number of MiB in bytes, and any
// other as it is.
func sized(value string) string {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n <= 0 || n%(1<<20) != 0 {
		return value
	}
	return size(n)
}

// trimmed formats x with at most that many digits after the point.
func trimmed(x float64, digits int) string {
	scale := math.Pow10(digits)
	return strconv.FormatFloat(math.Round(x*scale)/scale, 'f', -1, 64)
}

// duration formats seconds as a reader says them.
func duration(seconds float64) string {
	if seconds < 120 {
		return trimmed(seconds, 1) + " s"
	}
	return trimmed(seconds/60, 1) + " min"
}

// describe says what was run; workloads that differ in their threads only are one line.
func describe(workloads []result.Workload) []string {
	threads := map[result.Workload][]string{}
	var kinds []result.Workload
	for _, w := range workloads {
		kind := w
		kind.Threads = 0
		if threads[kind] == nil {
			kinds = append(kinds, kind)
		}
		threads[kind] = append(threads[kind], strconv.Itoa(w.Threads))
	}
	var lines []string
	for _, w := range kinds {
		noun := " threads"
		if len(threads[w]) == 1 && threads[w][0] == "1" {
			noun = " thread"
		}
		line := fmt.Sprintf("%s, %s x %s rows, %s, %d s after %d s of warm-up, rand-type %s", w.Name,
			plural(w.Tables, "table"), integer(int64(w.TableSize)), strings.Join(threads[w], ", ")+noun, w.Seconds, w.Warmup, w.RandType)
		if w.Rate > 0 {
			line += ", " + rate(w)
		}
		lines = append(lines, line)
	}
	return lines
}

func serverName(s result.Server) string {
	names := map[mycnf.Flavour]string{mycnf.MySQL: "MySQL", mycnf.Percona: "Percona Server", mycnf.MariaDB: "MariaDB"}
	name := names[s.Flavour]
	if name == "" {
		name = string(s.Flavour)
	}
	return strings.TrimSpace(name + " " + s.Version)
}

// command writes argv as one would type it: words with other than plain characters are quoted for a shell.
func command(argv []string) string {
	words := make([]string, len(argv))
	for i, w := range argv {
		words[i] = w
		if w == "" || strings.ContainsFunc(w, special) {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

func special(r rune) bool {
	plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=:,@%+", r)
	return !plain
}

func filesystem(f host.Filesystem) string {
	s := fmt.Sprintf("%s on %s, %s free of %s, blocks of %d bytes", f.Type, f.Device, size(f.Free), size(f.Size), f.Block)
	if len(f.Options) > 0 {
		s += " (" + strings.Join(f.Options, ",") + ")"
	}
	if f.Reflink {
		return s + ", clones with reflinks"
	}
	return s + ", no reflinks"
}

func disk(d host.Disk) string {
	kind := "flash"
	if d.Rotational {
		kind = "rotational"
	}
	parts := []string{strings.TrimSpace(d.Name + " " + d.Model), size(d.Size), kind, "scheduler " + d.Scheduler}
	if d.WriteCache != "" {
		parts = append(parts, "cache "+d.WriteCache)
	}
	return strings.Join(append(parts, "read-ahead "+size(d.ReadAhead)), ", ")
}

func cpu(c host.CPU) string {
	return fmt.Sprintf("%s, %d online, %s usable", c.Model, c.Online, trimmed(c.Usable, 2))
}

func memory(m host.Memory) string {
	return fmt.Sprintf("%s, limit %s, swap %s", size(m.Total), size(m.Limit), size(m.Swap))
}

func cgroup(c host.Cgroup) string {
	limit, cpus := "none", "none"
	if c.MemoryLimit > 0 {
		limit = size(c.MemoryLimit)
	}
	if c.CPULimit > 0 {
		cpus = trimmed(c.CPULimit, 2)
	}
	return fmt.Sprintf("%s, memory limit %s, CPU limit %s", c.Version, limit, cpus)
}
