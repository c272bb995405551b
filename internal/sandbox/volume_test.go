package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"david/internal/testmount"
)

// TestVolumeHasRoom: what the filesystem of a volume keeps to itself is counted, at each size.
func TestVolumeHasRoom(t *testing.T) {
	if err := lacksMkfs("xfs"); err != nil || os.Geteuid() != 0 {
		t.Skip("no root, or ", err)
	}
	for _, gib := range []int64{1, 4, 33, 100} {
		dir := newHome(t)
		file, point, size := filepath.Join(dir, "volume"), filepath.Join(dir, "mounted"), gib<<30
		if err := errors.Join(os.Mkdir(point, 0o700), os.WriteFile(file, nil, 0o600), os.Truncate(file, size),
			runTool(t.Context(), append(append([]string{}, mkfsVolume...), file)), mountLoop(file, point, "xfs", volumeFlags, 0)); err != nil {
			t.Fatal(err)
		}
		free, err := freeBytes(point)
		testmount.Off(t, point)
		if err != nil {
			t.Fatal(err)
		}
		if room := roomOn(size); room > free {
			t.Errorf("%d GiB: said to have room for %d MiB, has %d", gib, room>>20, free>>20)
		} else if free-room > size/100+64<<20 {
			t.Errorf("%d GiB: said to have room for %d MiB only, has %d", gib, room>>20, free>>20)
		}
		if s := sizeFor(roomOn(size)); s < size-1<<20 || s > size+1<<20 || roomOn(sizeFor(size)) < size {
			t.Errorf("%d GiB: room for %d MiB is found in %d MiB", gib, roomOn(size)>>20, s>>20)
		}
	}
}

// TestVolumeFits: on a disk that has just too little for the volume, and on one that has just enough: the volume is
// refused with the true figure, or what was asked for fits; one that is there already is kept by the same count.
func TestVolumeFits(t *testing.T) {
	if err := lacksMkfs("xfs"); err != nil || os.Geteuid() != 0 {
		t.Skip("no root, or ", err)
	}
	dir := newHome(t)
	const disk = 8 << 30
	testmount.Tmpfs(t, dir, fmt.Sprintf("size=%d", disk))
	need := roomOn(disk - spare - 1<<20) // david's own few files lie there too
	w, err := Open(context.Background(), dir, Options{Need: need, Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.hasRoom(); err != nil {
		t.Errorf("just enough: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	before, err := os.Stat(VolumePath(dir))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(context.Background(), dir, Options{Need: need + 2<<20, Log: io.Discard})
	if want := fmt.Sprintf("%d MiB are needed on the filesystem of %s", (sizeFor(need+2<<20)+spare)>>20, dir); !errors.Is(err, ErrDiskFull) || !strings.Contains(err.Error(), want) {
		t.Errorf("just too little: %v, want %q", err, want)
	}
	if after, err := os.Stat(VolumePath(dir)); err != nil || !os.SameFile(before, after) {
		t.Errorf("the volume that was there is gone: %v", err)
	}
	// On a disk that has grown it is made anew.
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, fmt.Sprintf("size=%d", disk+64<<20)); err != nil {
		t.Fatal(err)
	}
	w, err = Open(context.Background(), dir, Options{Need: need + 2<<20, Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.hasRoom(); err != nil {
		t.Errorf("grown: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
