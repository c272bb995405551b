package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestInOrder: a module is loaded after those it needs, once, and what is in the kernel not at all.
func TestInOrder(t *testing.T) {
	const dep = `kernel/fs/ext4/ext4.ko: kernel/fs/jbd2/jbd2.ko kernel/lib/crc16.ko
kernel/fs/jbd2/jbd2.ko: kernel/lib/crc16.ko
kernel/lib/crc16.ko:
kernel/drivers/md/dm-mod.ko.xz:
`
	if got, want := fmt.Sprint(inOrder(dep, []string{"virtio", "dm_mod", "ext4", "jbd2"})), "[kernel/drivers/md/dm-mod.ko.xz kernel/lib/crc16.ko kernel/fs/jbd2/jbd2.ko kernel/fs/ext4/ext4.ko]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestArchive: each entry is a head of 110 bytes with the name behind it, and a body, both filled up to four bytes.
func TestArchive(t *testing.T) {
	var b bytes.Buffer
	a := archive{w: &b}
	a.folder("early")
	a.file("early/one", 0o644, []byte("12345"))
	a.file("init", 0o755, nil)
	a.device("dev/null", 1, 3)
	if err := a.end(); err != nil {
		t.Fatal(err)
	}
	up := func(n int) int { return (n + 3) / 4 * 4 }
	var got []string
	for text := b.String(); text != ""; {
		field := func(i int) (n int) {
			fmt.Sscanf(text[6+8*i:14+8*i], "%x", &n)
			return n
		}
		name, size := field(11), field(6)
		body := text[up(110+name):][:size]
		got = append(got, fmt.Sprintf("%s %s %o %d:%d %q", text[:6], text[110:110+name-1], field(1), field(9), field(10), body))
		text = text[up(110+name)+up(size):]
	}
	want := `070701 early 40755 0:0 ""
070701 early/one 100644 0:0 "12345"
070701 init 100755 0:0 ""
070701 dev/null 20600 1:3 ""
070701 TRAILER!!! 0 0:0 ""`
	if all := strings.Join(got, "\n"); all != want {
		t.Errorf("%s\nwant\n%s", all, want)
	}
}

// TestTail keeps the end.
func TestTail(t *testing.T) {
	var text strings.Builder
	last := tail{&text}
	for i := range 10000 {
		fmt.Fprintln(&last, i)
	}
	if s := text.String(); !strings.HasSuffix(s, "9998\n9999\n") || len(s) > 4100 {
		t.Errorf("%d bytes, ending %q", len(s), s[max(0, len(s)-20):])
	}
}
