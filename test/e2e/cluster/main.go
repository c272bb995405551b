// Command cluster runs a real Kubernetes cluster of one or two nodes as plain processes, for david's tests:
// etcd, API server, controller manager, scheduler, and, in a network and a mount namespace for each node,
// containerd, kubelet, kube-proxy, and on the first CoreDNS. It is built from Go modules and Debian's packages, needs no registry, and
// leaves nothing behind.
//
//	cluster build                 build the binaries, or find them in the cache; prints their folder
//	cluster up                    a cluster with one node, or two (root)
//	cluster envtest               etcd and API server only, for dry runs (any user)
//	cluster load TAR ...          images into the running nodes
//	cluster storage               a storage driver with snapshots and clones, into a running cluster of one node
//	cluster kubeconfig            the path of the administrator's kubeconfig
//	cluster down                  end whatever runs, and remove whatever is left
//	cluster leftovers             what is left of one that is down
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

const (
	exitFailed      = 1
	exitUsage       = 2
	exitTarget      = 4 // a cluster cannot run here, or there is none
	exitInterrupted = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// targetError is one of the machine's or of the cluster's state, not a failure of this program.
type targetError struct{ error }

// usageError is bad input.
type usageError struct{ error }

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	if err := keepDescriptors(); err != nil {
		fmt.Fprintf(errOut, "cluster: %v\n", err)
		return exitFailed
	}
	root := commands(errOut)
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	err := root.ExecuteContext(ctx)
	var target targetError
	var bad usageError
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintf(errOut, "cluster: interrupted: %v\n", err)
		return exitInterrupted
	case errors.As(err, &bad):
		fmt.Fprintf(errOut, "cluster: %v\n", err)
		return exitUsage
	case errors.As(err, &target):
		fmt.Fprintf(errOut, "cluster: %v\n", err)
		return exitTarget
	}
	fmt.Fprintf(errOut, "cluster: %v\n", err)
	return exitFailed
}

func commands(errOut io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:           "cluster",
		Short:         "A Kubernetes cluster as plain processes, for david's tests",
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q; see: cluster -h", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	say := func(format string, args ...any) { fmt.Fprintf(errOut, "cluster: "+format+"\n", args...) }
	root.AddCommand(buildCommand(say), checkCommand(), upCommand(say), envtestCommand(say), loadCommand(), storageCommand(say), kubeconfigCommand(),
		downCommand(say), leftoversCommand(), nodeCommand(), guardCommand())
	return root
}

// noArgs refuses arguments with this program's exit code.
func noArgs(cmd *cobra.Command, args []string) error {
	if err := cobra.NoArgs(cmd, args); err != nil {
		return usageError{err}
	}
	return nil
}

func buildCommand(say func(string, ...any)) *cobra.Command {
	return &cobra.Command{Use: "build", Short: "Build the cluster's binaries, or find them in the cache", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			bin, err := binaries(cmd.Context(), "", say)
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), bin)
			}
			return err
		}}
}

func checkCommand() *cobra.Command {
	return &cobra.Command{Use: "check", Short: "Say whether a whole cluster can run here", Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return check() }}
}

func upCommand(say func(string, ...any)) *cobra.Command {
	o := options{}
	cmd := &cobra.Command{Use: "up", Short: "Start a cluster with its nodes (root)", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := up(cmd.Context(), o, say)
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), s.Kubeconfig)
			}
			return err
		}}
	cmd.Flags().StringVar(&o.dir, "dir", defaultDir, "the cluster's private folder; on a real disk, as the pods' data lie in it")
	cmd.Flags().StringVar(&o.bin, "bin", "", "the folder that cluster build printed; if not given, the cache of this repository's, filled where needed")
	cmd.Flags().IntVar(&o.owner, "owner", 0, "a process: when it ends, however it ends, the cluster is taken down")
	cmd.Flags().DurationVar(&o.wait, "wait", 0, "how long to wait where another owner's cluster is up")
	cmd.Flags().StringVar(&o.cpuManager, "cpu-manager", "none", "kubelet's CPU manager policy: none, or static (CPU 0 stays with the system)")
	cmd.Flags().StringArrayVar(&o.images, "image", nil, "a tar with an image to load into the nodes; repeatable")
	cmd.Flags().IntVar(&o.nodes, "nodes", 1, "how many nodes, 1 or 2")
	cmd.Flags().StringVar(&o.network, "network", "bridge", "how pods are joined: "+strings.Join(networks(), ", "))
	cmd.Flags().StringVar(&o.rate, "rate", "", "hold the wire between the nodes to a rate, as in 1gbit (a token bucket)")
	return cmd
}

func envtestCommand(say func(string, ...any)) *cobra.Command {
	o := options{}
	cmd := &cobra.Command{Use: "envtest", Short: "Start etcd and an API server only (any user)", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := envtest(cmd.Context(), o, say)
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), s.Kubeconfig)
			}
			return err
		}}
	cmd.Flags().StringVar(&o.dir, "dir", envtestDir(), "the private folder")
	cmd.Flags().StringVar(&o.bin, "bin", "", "the folder that cluster build printed; if not given, the cache of this repository's, filled where needed")
	cmd.Flags().IntVar(&o.owner, "owner", 0, "a process: when it ends, however it ends, all is taken down")
	return cmd
}

func loadCommand() *cobra.Command {
	dir := ""
	cmd := &cobra.Command{Use: "load TAR ...", Short: "Load images into the running nodes",
		RunE: func(cmd *cobra.Command, tars []string) error {
			if len(tars) == 0 {
				return usageError{errors.New("load needs the path of an image's tar")}
			}
			s, err := running(dir)
			if err != nil {
				return err
			}
			return s.load(cmd.Context(), tars)
		}}
	cmd.Flags().StringVar(&dir, "dir", defaultDir, "the cluster's private folder")
	return cmd
}

func storageCommand(say func(string, ...any)) *cobra.Command {
	dir := ""
	cmd := &cobra.Command{Use: "storage", Short: "Give a running cluster of one node volumes with snapshots and clones", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := canStore(); err != nil {
				return err
			}
			s, err := running(dir)
			if err != nil {
				return err
			}
			return s.addStorage(cmd.Context(), say)
		}}
	cmd.Flags().StringVar(&dir, "dir", defaultDir, "the cluster's private folder")
	return cmd
}

func kubeconfigCommand() *cobra.Command {
	dir := ""
	cmd := &cobra.Command{Use: "kubeconfig", Short: "Print the path of the administrator's kubeconfig", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := running(dir)
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), s.Kubeconfig)
			}
			return err
		}}
	cmd.Flags().StringVar(&dir, "dir", defaultDir, "the cluster's private folder")
	return cmd
}

func downCommand(say func(string, ...any)) *cobra.Command {
	dir := ""
	cmd := &cobra.Command{Use: "down", Short: "End the cluster and remove whatever is left of it", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dirs := []string{dir}
			if dir == "" {
				dirs = []string{envtestDir()}
				if os.Geteuid() == 0 {
					dirs = append(dirs, defaultDir)
				}
			}
			// Not the command's context: a Ctrl-C must not leave half a cluster.
			var errs []error
			for _, d := range dirs {
				errs = append(errs, down(d, say))
			}
			return errors.Join(errs...)
		}}
	cmd.Flags().StringVar(&dir, "dir", "", "the private folder; if not given, those of `up` and `envtest`")
	return cmd
}

func leftoversCommand() *cobra.Command {
	dir, since := "", ""
	cmd := &cobra.Command{Use: "leftovers", Short: "Print what a cluster left behind; fails if there is anything", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var before *system
			if since != "" {
				s, err := loadState(since)
				if err != nil {
					return usageError{err}
				}
				if s.Before == nil {
					return usageError{fmt.Errorf("the state in %s does not say what there was before", since)}
				}
				before = s.Before
			}
			left, err := leftovers(dir, before)
			if err != nil {
				return err
			}
			for _, l := range left {
				fmt.Fprintln(cmd.OutOrStdout(), l)
			}
			if len(left) > 0 {
				return fmt.Errorf("%d things are left over", len(left))
			}
			return nil
		}}
	cmd.Flags().StringVar(&dir, "dir", defaultDir, "the cluster's private folder")
	cmd.Flags().StringVar(&since, "since", "", "a folder with a copy of the cluster's state.json, which says what there was before; without it, only what bears the cluster's names is looked for")
	return cmd
}

// nodeCommand is not for users: it is how the node's first process enters its namespaces.
func nodeCommand() *cobra.Command {
	return &cobra.Command{Use: "node DIR COMMAND ...", Hidden: true, Args: cobra.MinimumNArgs(2), DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error { return enterNode(args[0], args[1:]) }}
}

// guardCommand is not for users: it waits for a process to end and takes the cluster down.
func guardCommand() *cobra.Command {
	dir, owner := "", 0
	cmd := &cobra.Command{Use: "guard", Hidden: true, Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return guard(dir, owner) }}
	cmd.Flags().StringVar(&dir, "dir", "", "")
	cmd.Flags().IntVar(&owner, "owner", 0, "")
	return cmd
}

// options of starting.
type options struct {
	dir        string
	bin        string
	owner      int
	wait       time.Duration
	cpuManager string
	images     []string
	nodes      int
	network    string
	rate       string
}
