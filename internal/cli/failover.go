package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"david/internal/ceph"
	"david/internal/failover"
)

// failoverFlags are those of david failover volume.
type failoverFlags struct {
	serverFlags
	imageFlags
	device, old, mount, options, start string
	fence                              []string
	detached, force, apply, json       bool
	recovery                           time.Duration
}

// imageFlags name an image on Ceph RBD and its cluster.
type imageFlags struct{ image, conf string }

// add adds the flags; image says what the image is of.
func (f *imageFlags) add(fs *pflag.FlagSet, image string) {
	fs.StringVar(&f.image, "image", "", "POOL/IMAGE, "+image)
	fs.StringVar(&f.conf, "ceph-conf", "/etc/ceph/ceph.conf", "with --image: the configuration of its cluster")
}

// read returns the image, nil where none is named.
func (f imageFlags) read() (*ceph.Image, error) {
	if f.image == "" {
		return nil, nil
	}
	pool, name, found := strings.Cut(f.image, "/")
	if !found {
		return nil, usage("--image %s: give POOL/IMAGE", f.image)
	}
	conf, err := filepath.Abs(f.conf) // Ceph's programs run elsewhere
	return &ceph.Image{Cluster: ceph.Cluster{Conf: conf}, Pool: pool, Name: name}, err
}

// failoverDocument is what david failover volume --json prints.
type failoverDocument struct {
	Applied bool `json:"applied"`
	*failover.Plan
}

func (a *app) failoverCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "failover",
		Short: "Take over from a server whose machine failed: its volume",
		Args:  onlyCommands,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.failoverVolumeCommand())
	return cmd
}

func (a *app) failoverVolumeCommand() *cobra.Command {
	var f failoverFlags
	cmd := &cobra.Command{
		Use:   "volume --image POOL/IMAGE|--device PATH --mount DIR --start COMMAND --dsn DSN --old HOST:PORT",
		Short: "Fence the machine that failed, mount its volume here, start a server on it, wait for its recovery; shows what it would do, --apply does it",
		Long: "Take over the volume of a server whose machine failed. The old side is fenced, so that it cannot write any more: on Ceph the cluster refuses it; of another\n" +
			"volume (--device) david proves that nobody on this machine has it, and you have to have detached it from the other. Then the volume is attached and mounted\n" +
			"here, which replays its filesystem's journal, the server is started and recovers, and david waits until it answers. Needs root. Without --apply the commands\n" +
			"are shown and nothing is changed (docs/failover.md).",
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := f.request(a)
			if err != nil {
				return err
			}
			return a.failOver(cmd.Context(), f, q)
		},
	}
	f.add(cmd.Flags())
	return cmd
}

func (f *failoverFlags) add(fs *pflag.FlagSet) {
	f.serverFlags.add(fs, "the server here, once it is started: user@unix(/path/socket)/ or user@tcp(127.0.0.1:3306)/", "an option file whose [client] group names the server here")
	f.imageFlags.add(fs, "the volume on Ceph RBD")
	fs.StringArrayVar(&f.fence, "fence", nil, "with --image: the IP of the machine that failed, or the address of a client as rbd status has it, to be fenced besides the one that has the image; repeatable")
	fs.StringVar(&f.device, "device", "", "PATH of the volume where it is not on Ceph: a block device, or a file with a filesystem")
	fs.BoolVar(&f.detached, "detached", false, "with --device: you have detached it from every other machine")
	fs.StringVar(&f.old, "old", "", "HOST:PORT, or the socket, of the server that failed: while it answers nothing is taken from it")
	fs.BoolVar(&f.force, "force", false, "also where the old server still answers, or is not named")
	fs.StringVar(&f.mount, "mount", "", "DIR to mount the volume on: empty, and where the server looks for its data")
	fs.StringVar(&f.options, "mount-options", "", "options of the mount, as noatime")
	fs.StringVar(&f.start, "start", "", "command that starts the server, as systemctl start mysql; words are split at spaces, no shell")
	fs.DurationVar(&f.recovery, "recovery", 10*time.Minute, "how long the server may take to recover and answer")
	fs.BoolVar(&f.apply, "apply", false, "do it")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
}

// request checks the flags.
func (f *failoverFlags) request(a *app) (q failover.Request, err error) {
	switch {
	case (f.image == "") == (f.device == ""):
		return q, usage("name the volume: --image POOL/IMAGE on Ceph, or --device PATH")
	case f.mount == "":
		return q, usage("--mount is missing: name the empty folder where the server looks for its data")
	case !filepath.IsAbs(f.mount) || f.device != "" && !filepath.IsAbs(f.device):
		return q, usage("give --mount and --device as whole paths, as /srv/mysql")
	case len(strings.Fields(f.start)) == 0:
		return q, usage("--start is missing: give the command that starts the server, as systemctl start mysql")
	case f.image == "" && len(f.fence) > 0:
		return q, usage("--fence is for --image: only a Ceph cluster can shut somebody out")
	case f.device == "" && f.detached:
		return q, usage("--detached is for --device: on Ceph david fences the old side itself")
	case f.recovery <= 0:
		return q, usage("--recovery: give a time above 0, as 10m")
	case !f.named():
		return q, usage("--dsn is missing: david has to ask the server whether it serves; name it as user@unix(/path/socket)/")
	}
	q = failover.Request{Home: a.home, Fence: f.fence, Device: filepath.Clean(f.device), Detached: f.detached, Old: f.old, Force: f.force, Mount: filepath.Clean(f.mount),
		Start: strings.Fields(f.start), Recovery: f.recovery, Say: a.step}
	if f.options != "" {
		q.Options = strings.Split(f.options, ",")
	}
	if q.Image, err = f.imageFlags.read(); err != nil {
		return q, err
	}
	q.Addr, err = a.remoteAddr(f.serverFlags)
	return q, err
}

// failOver shows what it would do, or does it.
func (a *app) failOver(ctx context.Context, f failoverFlags, q failover.Request) error {
	p, err := failover.Look(ctx, q)
	if err != nil {
		return failoverError(ctx, err)
	}
	if f.apply {
		err = p.Apply(ctx)
	}
	err = errors.Join(failoverError(ctx, err), p.Close())
	if f.json {
		return errors.Join(err, a.printJSON(failoverDocument{f.apply && err == nil, p}))
	}
	if err == nil {
		printFailover(a.out, *p, f.apply)
	}
	return err
}

// printFailover begins with what serves, and since when.
func printFailover(w io.Writer, p failover.Plan, applied bool) {
	if applied {
		fmt.Fprintf(w, "%s serves after %.1f s: version %s, uuid %s\n", p.Volume, p.Seconds, p.Server.Version, p.Server.UUID)
	} else {
		fmt.Fprintf(w, "%s would be taken over, in these steps:\n", p.Volume)
	}
	for _, s := range p.Steps {
		took := ""
		if applied {
			took = fmt.Sprintf("%6.1f s", s.Seconds)
		}
		fmt.Fprintf(w, "  %-8s%s  %s\n", s.Name, took, strings.Join(s.Command, " "))
	}
	for _, n := range p.Notes {
		fmt.Fprintln(w, n)
	}
	if p.Server.ReadOnly != "" {
		fmt.Fprintf(w, "it takes no writes yet: %s\n", p.Server.ReadOnly)
	}
	if !applied {
		fmt.Fprintln(w, "nothing was changed: --apply does it")
		return
	}
	for _, address := range p.Fenced {
		fmt.Fprintf(w, "fenced: %s; once that machine was restarted: ceph osd blocklist rm %s\n", address, address)
	}
	fmt.Fprintf(w, "to give the volume back, once the server is stopped: %s\n", strings.Join(p.Undo, "; "))
}

// failoverError gives what is the user's to mend its exit code.
func failoverError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return codedError{exitInterrupted, err}
	case errors.Is(err, failover.ErrInput):
		return codedError{exitUsage, err}
	case errors.Is(err, failover.ErrServer):
		return codedError{exitTarget, err}
	}
	return err
}
