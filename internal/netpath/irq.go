package netpath

import (
	"bufio"
	"compress/gzip"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// irqTimeApart tells whether this kernel keeps the time of interrupts apart from that of the process they come upon
// (CONFIG_IRQ_TIME_ACCOUNTING, init/Kconfig). Where it does not, a packet that is handled while its sender runs, as over a veth,
// is in the sender's CPU time already. Where the kernel's configuration cannot be read it is taken to: distributions' kernels do.
func irqTimeApart() bool {
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		if f, err := os.Open("/boot/config-" + unix.ByteSliceToString(name.Release[:])); err == nil {
			defer f.Close()
			return irqTimeIn(f)
		}
	}
	f, err := os.Open("/proc/config.gz")
	if err != nil {
		return true
	}
	defer f.Close()
	text, err := gzip.NewReader(f)
	return err != nil || irqTimeIn(text)
}

// irqTimeIn reads a kernel's configuration.
func irqTimeIn(config io.Reader) bool {
	lines := bufio.NewScanner(config)
	known := false
	for lines.Scan() {
		if lines.Text() == "CONFIG_IRQ_TIME_ACCOUNTING=y" {
			return true
		}
		known = known || strings.Contains(lines.Text(), "CONFIG_IRQ_TIME_ACCOUNTING") || strings.HasPrefix(lines.Text(), "CONFIG_TICK_CPU_ACCOUNTING=")
	}
	return !known || lines.Err() != nil
}
