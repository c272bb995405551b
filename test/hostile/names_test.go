package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// hostileNames are names, and paths, that are hostile to what makes a file, an object or a flag of them.
func hostileNames() []string {
	return []string{
		"..", ".", "../x", "../../x", "/", "/etc", "/etc/passwd", "{dir}/../x", "x/../../y", "x/y", "./x", "x/", "//", "a//b", "~", "~root/x", "$HOME", "$(id)", "`id`", "a b", " a", "a ", "a;id", "a|id", "a&", "a>b", "a<b", "a*", "a?", "[a]",
		"-", "--", "-x", "--help", "--version", "-rf", "--out=/etc", "=", "a=b", "a,b", "a:b", "a@b", "a#b", "a%b", "%2e%2e", "%s%n", "a\\b", "..\\x", "C:\\x", "con", "nul", "a'b", "a\"b", "a`b", "'; DROP TABLE x; --", "<b>", "{{.}}", "${x}",
		"A", "UPPER", "ünïcode", "ＦＵＬＬ", "😀", "\u202egnp", "a\u200bb", "a\u2028b", "a\ufeffb", strings.Repeat("a", 64), strings.Repeat("a", 65), strings.Repeat("a", 256), strings.Repeat("a", 4096), strings.Repeat("a", 70000),
		strings.Repeat("../", 100) + "etc", strings.Repeat("a/", 2000), "0", "-0", "1e9", "null", "true", "~", "!!str x", "&a", "*a", "a: b", "- a", "# a", "latest", "control", "kube-system", "default", "a..b", "a.b", ".hidden", "-a", "a-", "a_", "_a",
	}
}

// names has david make something of each name, or look for it, in some of the ways. Nothing may be made outside of the
// case's folder.
func names(uint64) (list []hostile) {
	pod := []string{"--cpus", "1", "--memory", "1Gi", "--size", "10Gi", "--stdout"}
	for i, name := range hostileNames() {
		for j, args := range [][]string{
			{"compare", "--arm", "control", "--arm=" + name, "--server", "mysql"}, {"compare", "--arm", "control", "--arm", "x", "--control=" + name}, {"show", name}, {"report", name, "--out", "{dir}/report.html"},
			{"rollback", name}, append([]string{"manifest", "--storage", "zfs", "--name=" + name}, pod...), append([]string{"manifest", "--storage", "zfs", "--namespace=" + name}, pod...),
			append([]string{"manifest", "--storage=class:" + name}, pod...), {"manifest", "node-prep", "--storage", "zfs", "--disks=" + name, "--node", "n", "--pool=" + name}, {"crash-test", "--server=" + name}, {"price", name},
			{"crash-test", "--server", "mysql", "--unlock=" + name}, append([]string{"manifest", "--storage", "local", "--node=" + name, "--path=" + name, "--image=" + name, "--secret=" + name}, pod...),
		} {
			if (i+j)%3 == 0 {
				list = append(list, hostile{class: "name", name: fmt.Sprintf("%03d of %s %d", i, args[0], j), args: args, lock: nothingElsewhere})
			}
		}
	}
	return list
}

// nothingElsewhere says so where something was made that a name may have led to.
func nothingElsewhere(_ *david, s seen) string {
	for _, path := range []string{"/etc/x", "/x", "/owned", "/tmp/owned", filepath.Join(filepath.Dir(s.dir), "x"), filepath.Join(s.dir, "owned")} {
		if _, err := os.Lstat(path); err == nil {
			return "it made " + path
		}
	}
	return ""
}
