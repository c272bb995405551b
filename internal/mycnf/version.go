package mycnf

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Version is a server's release number. Versions are compared number by number: 8.10 is later than 8.4, and
// Oracle's calendar versions (26.7) follow 9.7.
type Version struct {
	Major int
	Minor int
	Patch int
}

// LastOfSeries is the third number of a series' last release, whichever that is: of "8.0" as the tags of
// images name it. No release has it.
const LastOfSeries = 10_000

// versionPattern takes the leading numbers; what packagers append ("-2", "-28", "-MariaDB-0+deb12u1", "-log")
// is left aside.
var versionPattern = regexp.MustCompile(`^(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?:[-+~ ].*)?$`)

// replicationHack stands before MariaDB 10's version in the handshake, since old replicas read one
// digit only.
const replicationHack = "5.5.5-"

// ParseVersion reads a version as servers and packages write it: "8.4.6", "9.7.4-2", "8.0.36-28", "26.7.1",
// "10.11.19-MariaDB-0+deb12u1". A missing third number is 0.
func ParseVersion(s string) (Version, error) {
	text := strings.TrimSpace(s)
	if strings.HasPrefix(text, replicationHack) && isMariaDB(text) {
		text = strings.TrimPrefix(text, replicationHack)
	}
	m := versionPattern.FindStringSubmatch(text)
	if m == nil {
		return Version{}, fmt.Errorf("cannot read server version %q: want numbers such as 8.4.6 or 10.11.19-MariaDB", s)
	}
	number := func(digits string) int {
		n, err := strconv.Atoi(digits)
		if err != nil { // only the absent third number: the pattern lets nothing else through
			return 0
		}
		return n
	}
	return Version{Major: number(m[1]), Minor: number(m[2]), Patch: number(m[3])}, nil
}

// ParseRelease reads a version as people and the tags of images write it: one without a third number, such as
// "8.0" or "10.6-jammy", is a series, and means its last release.
func ParseRelease(s string) (Version, error) {
	v, err := ParseVersion(s)
	if err == nil && versionPattern.FindStringSubmatch(strings.TrimSpace(s))[3] == "" {
		v.Patch = LastOfSeries
	}
	return v, err
}

// Compare is negative where v is older than w, 0 where they are equal, positive where v is later.
func (v Version) Compare(w Version) int {
	if v.Major != w.Major {
		return v.Major - w.Major
	}
	if v.Minor != w.Minor {
		return v.Minor - w.Minor
	}
	return v.Patch - w.Patch
}

// AtLeast tells whether v is the version named or a later one.
func (v Version) AtLeast(major, minor, patch int) bool {
	return v.Compare(Version{major, minor, patch}) >= 0
}

// String gives the three numbers: "8.4.6"; two of the last release of a series: "8.4".
func (v Version) String() string {
	if v.Patch == LastOfSeries {
		return v.Series()
	}
	return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
}

// Series gives the first two numbers: "8.4".
func (v Version) Series() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// FlavourOf tells a live server's flavour from its @@version and @@version_comment.
func FlavourOf(version, comment string) Flavour {
	switch {
	case isMariaDB(version), isMariaDB(comment):
		return MariaDB
	case strings.Contains(strings.ToLower(comment), "percona"):
		return Percona
	}
	return MySQL
}

func isMariaDB(s string) bool { return strings.Contains(strings.ToLower(s), "mariadb") }

// ServerGroups are the sections of a my.cnf that a server of this flavour and version reads, in any case of
// their letters; mysql_cluster only where NDB was built in, as in Debian's package.
func ServerGroups(f Flavour, v Version) []string {
	switch f {
	case MariaDB:
		return []string{"mysqld", "server", "mysqld-" + v.Series(), "mariadb", "mariadb-" + v.Series(), "mariadbd", "mariadbd-" + v.Series(),
			"client-server", "galera"}
	case MySQL:
		return []string{"mysql_cluster", "mysqld", "server", "mysqld-" + v.Series()}
	}
	return []string{"mysqld", "server", "mysqld-" + v.Series()}
}
