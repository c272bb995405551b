package cli

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"david/internal/manifest/check"
)

// checkFlags holds the options of david manifest check.
type checkFlags struct {
	clusterFlags
	crds     string
	recovery time.Duration
	json     bool
	cluster  bool // --kubeconfig or --context was given
}

func (a *app) manifestCheckCommand() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check DIR|FILE|-",
		Short: "Check manifests: strict schemas offline, the cluster's own opinion with --kubeconfig, and david's rules for database pods",
		Long: "Check manifests of Kubernetes, david's or anybody's: a kustomize folder, a folder of YAML files, a file, or standard input (-). Unknown and repeated fields\n" +
			"are errors, with file and line; custom resources are held against the definitions of --crds. With --kubeconfig or --context the cluster is asked too: a dry run of\n" +
			"each object by its API server, and its storage classes. For pods that run MySQL or MariaDB, and for the resources of\n" +
			"their operators, david's rules follow (docs/kubernetes.md names them). Exit code 2 where there are errors. Nothing is changed anywhere.",
		Args: exactArgs(1, "one folder, one file, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.cluster = cmd.Flags().Changed("kubeconfig") || cmd.Flags().Changed("context")
			if cmd.Flags().Changed("recovery") && f.recovery <= 0 {
				return usage("--recovery %s: give how long recovery from a crash took, as in 30s", f.recovery)
			}
			if f.crds == "-" {
				return usage("--crds -: standard input is for the manifests; give a folder or a file")
			}
			return a.manifestCheck(cmd.Context(), f, args[0], cmd.InOrStdin())
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.crds, "crds", "", "DIR or FILE with the definitions of custom resources, as the operators ship them")
	fs.DurationVar(&f.recovery, "recovery", 0, "how long recovery from a crash took, which the start-up probe has to outlast")
	f.clusterFlags.add(fs)
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// manifestCheck checks what a path holds.
func (a *app) manifestCheck(ctx context.Context, f checkFlags, path string, in io.Reader) error {
	docs, found, unseen, err := readManifests(ctx, path, in)
	if err != nil {
		return err
	}
	if len(docs) == 0 && len(found) == 0 {
		return usage("%s holds no objects of Kubernetes", path)
	}
	known := check.Known{Recovery: f.recovery, Networks: a.networkCosts}
	if f.crds != "" {
		if known.Schemas, err = readDefinitions(f.crds); err != nil {
			return err
		}
	}
	result, err := check.Inspect(docs, known)
	if err != nil {
		return err
	}
	result.Findings = append(result.Findings, found...)
	result.Unseen = append(result.Unseen, unseen...)
	if f.cluster {
		if err := a.askCluster(ctx, f, docs, &result); err != nil {
			return err
		}
	}
	result.Sort()
	if f.json {
		err = a.printJSON(result)
	} else {
		err = a.fit(func(out io.Writer) error { return result.Text(out, path) })
	}
	if n := result.Errors(); err == nil && n > 0 {
		return usage("%s: %s", path, pluralise(n, "error"))
	}
	return err
}
