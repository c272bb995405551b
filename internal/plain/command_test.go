package plain

import (
	"strings"
	"testing"
)

func TestCommand(t *testing.T) {
	for _, test := range []struct{ name, line, want string }{
		{"what fits stays", "  ls   # all", "  ls   # all"},
		{"a command is whole", "  mkfs.xfs -f /dev/DISK1 /dev/DISK2", "  mkfs.xfs -f /dev/DISK1 /dev/DISK2"},
		{"a remark alone", "  # it rests on what the disk gives", "  # it rests on what\n  # the disk gives"},
		{"a remark behind", "  rbd pool init db   # in any node of it", "  # in any node of\n  # it\n  rbd pool init db"},
		{"a hash that is none", "echo a#b   ;echo 'c # d and e and f'", "echo a#b   ;echo 'c # d and e and f'"},
	} {
		if got := strings.Join(Command(test.line, 20), "\n"); got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", test.name, got, test.want)
		}
	}
}
