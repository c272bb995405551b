package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"david/internal/kube"
	"david/internal/manifest/check"
	"david/internal/manifest/stream"
)

// askCluster adds what a cluster says of the objects: a strict dry run of each by its API server, and whether
// the storage classes that the stream does not hold are there and can expand.
func (a *app) askCluster(ctx context.Context, f checkFlags, docs []stream.Document, result *check.Inspection) error {
	cluster, err := kube.Open(ctx, f.kubeconfig, f.context)
	if err != nil {
		return codedError{clusterCode(err), err}
	}
	objects := make([]any, len(docs))
	for i, d := range docs {
		objects[i] = d.Value
	}
	for i, err := range cluster.DryRun(ctx, objects...) {
		if errors.Is(err, kube.ErrForbidden) || errors.Is(err, kube.ErrUnreachable) || errors.Is(err, context.Canceled) {
			return codedError{clusterCode(err), err}
		}
		if err != nil {
			d := docs[i]
			result.Findings = append(result.Findings, check.Finding{Severity: check.SeverityError, Rule: "dry-run", Object: d.Object(), File: d.File, Line: d.Line,
				Why: err.Error(), Do: "correct it: kubectl apply would fail with it"})
		}
	}
	// The API server has the definitions of what it took, and has evaluated their rules.
	result.Unseen = slices.DeleteFunc(result.Unseen, check.SchemaUnseen)
	for _, used := range check.Classes(docs) {
		found, err := lookAtClass(ctx, cluster, used)
		if err != nil {
			return err
		}
		result.Findings = append(result.Findings, found...)
		result.Unseen = slices.DeleteFunc(result.Unseen, func(text string) bool { return text == used.Unseen() })
	}
	return nil
}

// lookAtClass judges a storage class of the cluster.
func lookAtClass(ctx context.Context, cluster *kube.Cluster, used check.ClassUse) ([]check.Finding, error) {
	class, err := cluster.StorageClass(ctx, used.Class)
	f := check.Finding{Rule: "storage-class", Object: used.Doc.Object(), File: used.Doc.File, Line: used.Doc.Line, Path: used.Path}
	switch {
	case errors.Is(err, kube.ErrNotFound):
		f.Severity, f.Why = check.SeverityError, fmt.Sprintf("the cluster has no StorageClass %s, and the stream makes none: the claim stays pending for ever", used.Class)
		f.Do = "name one of the cluster's (kubectl get storageclass), or make it"
		return []check.Finding{f}, nil
	case err != nil:
		return nil, codedError{clusterCode(err), err}
	}
	found, err := used.Flushes(class)
	if err != nil {
		return nil, err
	}
	if class.AllowVolumeExpansion == nil || !*class.AllowVolumeExpansion {
		f.Severity, f.Why = check.SeverityWarning, fmt.Sprintf("StorageClass %s of the cluster does not allow expansion: a full volume has to be copied to a larger one, with the server down", used.Class)
		f.Do = "set allowVolumeExpansion: true where the driver can"
		found = append(found, f)
	}
	return found, nil
}
