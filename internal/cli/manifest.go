package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"david/internal/manifest"
	"david/internal/manifest/check"
	"david/internal/manifest/render"
	"david/internal/manifest/stream"
)

func (a *app) manifestCommand() *cobra.Command {
	var f manifestFlags
	cmd := &cobra.Command{
		Use:   "manifest",
		Short: "Render the tuned server for Kubernetes: a kustomize folder with my.cnf for the pod's limits, storage, probes and reasons",
		Long: "Render what to deploy in Kubernetes: a kustomize folder of plain objects, each field that david chose with its reason. The my.cnf is that of a\n" +
			"tune (--from), or your own (--cnf), derived for the pod's CPUs and memory; without either it is made by david's rules, unmeasured.\n" +
			"Nothing is applied to a cluster.",
		Args: onlyCommands,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.given = cmd.Flags().Changed
			return a.manifest(f)
		},
	}
	f.add(cmd.Flags())
	cmd.AddCommand(a.nodePrepCommand(), a.manifestCheckCommand())
	return cmd
}

// manifest renders a request into a folder, or as a stream.
func (a *app) manifest(f manifestFlags) error {
	if f.stdout && f.given("out") {
		return usage("--stdout and --out both say where the objects go: give one")
	}
	req, err := a.deployment(f)
	if err != nil {
		return err
	}
	if f.stdout {
		return a.stream(req)
	}
	out := cmp.Or(f.out, "david-manifest-"+req.Name)
	if err := ownFolder(out, f.force); err != nil {
		return err
	}
	if err := ownDatabase(out, req.Name); err != nil {
		return err
	}
	if err := passwordOf(&req, out, f.force); err != nil {
		return err
	}
	objects, err := a.rendered(req)
	if err != nil {
		return err
	}
	files, err := render.Folder(req.Name, objects)
	if err != nil {
		return err
	}
	if err := sameData(out, files, f.force); err != nil {
		return err
	}
	if err := writeManifests(out, files); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "written: %s with %s\napply with: kubectl apply -k %s\n", out, pluralise(len(files), "file"), out)
	docs, _, _, err := manifestsIn(out)
	if err != nil {
		return err
	}
	return advised(a.out, docs)
}

// advised prints what david manifest check finds of objects that were rendered just now: of their settings, what the
// adviser says.
func advised(out io.Writer, docs []stream.Document) error {
	found, err := check.Inspect(docs, check.Known{})
	if err != nil {
		return err
	}
	found.Sort()
	for _, f := range found.Findings {
		fmt.Fprintln(out, f)
	}
	return nil
}

// rendered renders a request, and tells what the user has to know of it.
func (a *app) rendered(req render.Request) ([]render.Object, error) {
	objects, err := manifest.Render(req)
	if errors.Is(err, render.ErrBad) {
		return nil, codedError{exitUsage, err}
	}
	if err != nil {
		return nil, err
	}
	notes, err := manifest.Notes(req)
	for _, n := range notes {
		a.remark("%s", n)
	}
	return objects, err
}

// stream prints the objects. It is complete or not there at all.
func (a *app) stream(req render.Request) error {
	objects, err := a.rendered(req)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.Text != "" {
			a.remark("what the storage needs first (files that are named are in the folder of david manifest --out; apply the stream where it says -k):")
			fmt.Fprint(a.err, o.Text)
		}
	}
	if req.Secret == "" && req.SecretKey() != "" {
		a.remark("the Secret is not in the stream; create it, once:")
		fmt.Fprintf(a.err, "  %s\n", req.SecretCommand())
	}
	var text bytes.Buffer
	if err := render.Encode(&text, objects); err != nil {
		return err
	}
	docs, _ := check.Read("-", text.Bytes())
	if err := fitted(a.err, func(out io.Writer) error { return advised(out, docs) }); err != nil {
		return err
	}
	_, err = a.out.Write(text.Bytes())
	return err
}
