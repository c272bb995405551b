package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
)

// ref says where an object is.
type ref struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

func (r ref) String() string {
	if r.namespace == "" {
		return r.resource.Resource + "/" + r.name
	}
	return fmt.Sprintf("%s/%s in namespace %s", r.resource.Resource, r.name, r.namespace)
}

// Object makes what the calls here take of a typed value (*corev1.Pod), or of a custom resource's
// map[string]any.
func Object(value any) (*unstructured.Unstructured, error) {
	switch v := value.(type) {
	case *unstructured.Unstructured:
		return v.DeepCopy(), nil
	case map[string]any:
		return fromMap(v)
	case runtime.Object:
		return fromTyped(v)
	}
	return nil, fmt.Errorf("cannot make a Kubernetes object of a %T", value)
}

// fromMap goes by way of JSON: ints and typed values within are not what deep copies take.
func fromMap(m map[string]any) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("cannot make a Kubernetes object: %w", err)
	}
	u := new(unstructured.Unstructured)
	if err := u.UnmarshalJSON(text); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return u, nil
}

func fromTyped(v runtime.Object) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v)
	if err != nil {
		return nil, fmt.Errorf("cannot make a Kubernetes object: %w", err)
	}
	u := &unstructured.Unstructured{Object: fields}
	if u.GetKind() == "" {
		kinds, _, err := scheme.Scheme.ObjectKinds(v)
		if err != nil {
			return nil, fmt.Errorf("cannot tell the kind of a %T: %w", v, err)
		}
		u.SetGroupVersionKind(kinds[0])
	}
	delete(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(u.Object, "spec", "template", "metadata", "creationTimestamp")
	return u, nil
}

// place finds where the API server keeps an object, and its client. An object of a namespace that names none
// goes to the context's.
func (c *Cluster) place(u *unstructured.Unstructured) (ref, dynamic.ResourceInterface, error) {
	kind := u.GroupVersionKind()
	m, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return ref{}, nil, explain(err, fmt.Sprintf("cannot place %s %s", kind.Kind, u.GetName()), "get", "/api and /apis")
	}
	r := ref{m.Resource, "", u.GetName()}
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		if u.GetNamespace() == "" {
			u.SetNamespace(c.Namespace)
		}
		r.namespace = u.GetNamespace()
	}
	return r, c.client(r), nil
}

func (c *Cluster) client(r ref) dynamic.ResourceInterface {
	if r.namespace == "" {
		return c.any.Resource(r.resource)
	}
	return c.any.Resource(r.resource).Namespace(r.namespace)
}

// Create creates the objects of a run, in order, each with the labels ManagedBy and RunLabel, as have the
// pods it makes. An object that exists is never overwritten: ErrForeign where david did not create it. What
// was created before an error stays for Remove.
func (c *Cluster) Create(ctx context.Context, run Run, objects ...any) error {
	for _, o := range objects {
		u, err := Object(o)
		if err != nil {
			return err
		}
		stamp(u, run)
		r, client, err := c.place(u)
		if err != nil {
			return err
		}
		_, err = client.Create(ctx, u, metav1.CreateOptions{FieldManager: manager, FieldValidation: metav1.FieldValidationStrict})
		if apierrors.IsAlreadyExists(err) {
			return c.exists(ctx, client, r)
		}
		// A call cut off by an interruption may have been carried out: it is noted as made.
		if err == nil || ctx.Err() != nil {
			c.note(run.ID, r)
		}
		if err != nil {
			return explain(err, "cannot create "+r.String(), "create", r.resource.Resource)
		}
	}
	return nil
}

func (c *Cluster) note(run string, r ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made[run] = append(c.made[run], r)
}

// exists says whose object is in the way.
func (c *Cluster) exists(ctx context.Context, client dynamic.ResourceInterface, r ref) error {
	old, err := client.Get(ctx, r.name, metav1.GetOptions{})
	if err != nil {
		return explain(err, "cannot look at "+r.String(), "get", r.resource.Resource)
	}
	if old.GetLabels()[ManagedBy] != manager {
		return fmt.Errorf("%s exists, and %w: it is left alone", r, ErrForeign)
	}
	return fmt.Errorf("%s exists, of david's run %q: remove it, or wait until that run is over", r, old.GetLabels()[RunLabel])
}

// stamp puts the run's marks on an object, and its label on the pods it will have.
func stamp(u *unstructured.Unstructured, run Run) {
	labels := map[string]string{ManagedBy: manager, RunLabel: run.ID}
	u.SetLabels(merged(u.GetLabels(), labels))
	notes := map[string]string{}
	if run.Owner != "" {
		notes[ownerNote] = run.Owner
	}
	if !run.Until.IsZero() {
		notes[untilNote] = run.Until.UTC().Format(time.RFC3339)
	}
	u.SetAnnotations(merged(u.GetAnnotations(), notes))
	if _, found, _ := unstructured.NestedMap(u.Object, "spec", "template"); !found { // no map, no template of pods
		return
	}
	pods, _, err := unstructured.NestedStringMap(u.Object, "spec", "template", "metadata", "labels")
	if err != nil {
		return // the API server will say what is wrong with them
	}
	list := map[string]any{}
	for k, v := range merged(pods, labels) {
		list[k] = v
	}
	_ = unstructured.SetNestedMap(u.Object, list, "spec", "template", "metadata", "labels") // the path was just read
}

func merged(a, b map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}

// tryApply returns the dry run of a server-side apply with strict field validation.
func tryApply(ctx context.Context, client dynamic.ResourceInterface, u *unstructured.Unstructured) error {
	body, err := u.MarshalJSON()
	if err != nil {
		return err
	}
	yes := true
	_, err = client.Patch(ctx, u.GetName(), types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: manager, Force: &yes, DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	return err
}

// DryRun has the API server check each object as if it were to be kept, unknown fields refused, and returns
// an error for each, nil where it is good; ErrForbidden, ErrInvalid and ErrNotFound (its namespace) tell
// apart what is wrong. An object of a namespace that is created by another of the objects is checked in the
// namespace "default".
func (c *Cluster) DryRun(ctx context.Context, objects ...any) []error {
	list := make([]*unstructured.Unstructured, len(objects))
	errs := make([]error, len(objects))
	coming := map[string]bool{}
	for i, o := range objects {
		list[i], errs[i] = Object(o)
		if errs[i] == nil && list[i].GetKind() == "Namespace" {
			coming[list[i].GetName()] = true
		}
	}
	for name := range coming {
		if _, err := c.core.Namespaces().Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			delete(coming, name)
		}
	}
	for i, u := range list {
		if errs[i] != nil {
			continue
		}
		if coming[u.GetNamespace()] {
			u.SetNamespace("default")
		}
		errs[i] = c.dryRun(ctx, u)
	}
	return errs
}

func (c *Cluster) dryRun(ctx context.Context, u *unstructured.Unstructured) error {
	r, client, err := c.place(u)
	if err != nil {
		return err
	}
	verb := "create"
	_, err = client.Create(ctx, u, metav1.CreateOptions{FieldManager: manager, DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	if apierrors.IsAlreadyExists(err) {
		verb, err = "patch", tryApply(ctx, client, u)
	}
	return explain(err, "dry run of "+r.String(), verb, r.resource.Resource)
}

// kinds returns what david's runs create, in the order to remove them.
func kinds() []schema.GroupVersionResource {
	of := func(group, version string, names ...string) (list []schema.GroupVersionResource) {
		for _, name := range names {
			list = append(list, schema.GroupVersionResource{Group: group, Version: version, Resource: name})
		}
		return list
	}
	return slices.Concat(of("batch", "v1", "jobs"), of("apps", "v1", "statefulsets"),
		of("", "v1", "pods", "services", "configmaps", "secrets", "persistentvolumeclaims", "serviceaccounts"),
		of("snapshot.storage.k8s.io", "v1", "volumesnapshots"))
}

// wide returns those that are in no namespace.
func wide() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{{Version: "v1", Resource: "namespaces"}, {Version: "v1", Resource: "persistentvolumes"}}
}

const (
	removeLimit = 3 * time.Minute // a pod has its grace period to end in
	removeEvery = 300 * time.Millisecond
)

// Remove removes everything that carries the run's label, in the namespaces named and in those where this
// process created something for the run, and waits until it is gone. It works also where ctx is cancelled.
// Kinds that may not be listed are passed over, except for what this process made.
func (c *Cluster) Remove(ctx context.Context, run string, namespaces ...string) error {
	made := c.madeBy(run)
	return c.remove(ctx, run, func(ctx context.Context) ([]ref, error) {
		found, err := c.labelled(ctx, RunLabel+"="+run, places(made, namespaces))
		return append(found, made...), err
	})
}

// RemoveMade removes what this process created for a run, and nothing else that carries its label.
func (c *Cluster) RemoveMade(ctx context.Context, run string) error {
	made := c.madeBy(run)
	return c.remove(ctx, run, func(context.Context) ([]ref, error) { return made, nil })
}

// RemoveObjects removes these objects of a run, and nothing else of it.
func (c *Cluster) RemoveObjects(ctx context.Context, run string, objects ...any) error {
	var list []ref
	for _, o := range objects {
		u, err := Object(o)
		if err != nil {
			return err
		}
		r, _, err := c.place(u)
		if err != nil {
			return err
		}
		list = append(list, r)
	}
	return c.remove(ctx, run, func(context.Context) ([]ref, error) { return list, nil })
}

func (c *Cluster) madeBy(run string) []ref {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.made[run])
}

// remove removes what there is, again and again until there is nothing.
func (c *Cluster) remove(ctx context.Context, run string, there func(context.Context) ([]ref, error)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
	defer cancel()
	for {
		all, err := there(ctx)
		if err != nil {
			return err
		}
		var left []ref
		for _, r := range all {
			there, err := c.delete(ctx, r)
			if err != nil {
				return err
			}
			if there {
				left = append(left, r)
			}
		}
		if len(left) == 0 {
			return nil
		}
		if err := pause(ctx, removeEvery); err != nil {
			return fmt.Errorf("still in the cluster after %s: %s, with the label %s=%s: %w", removeLimit, left[0], RunLabel, run, err)
		}
	}
}

func places(made []ref, namespaces []string) []string {
	set := map[string]bool{"": true}
	for _, r := range made {
		set[r.namespace] = true
	}
	for _, n := range namespaces {
		set[n] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// labelled lists what carries a label. The namespace "" stands for what is in none.
func (c *Cluster) labelled(ctx context.Context, selector string, namespaces []string) (list []ref, err error) {
	for _, namespace := range namespaces {
		resources := kinds()
		if namespace == "" {
			resources = wide()
		}
		for _, resource := range resources {
			found, err := c.client(ref{resource, namespace, ""}).List(ctx, metav1.ListOptions{LabelSelector: selector})
			if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, explain(err, "cannot list "+resource.Resource, "list", resource.Resource)
			}
			for _, item := range found.Items {
				list = append(list, ref{resource, namespace, item.GetName()})
			}
		}
	}
	return list, nil
}

// delete deletes an object, after what it made (a Job its pods), and tells whether it was there: it may be
// for a while longer.
func (c *Cluster) delete(ctx context.Context, r ref) (there bool, err error) {
	foreground := metav1.DeletePropagationForeground
	err = c.client(r).Delete(ctx, r.name, metav1.DeleteOptions{PropagationPolicy: &foreground})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return true, explain(err, "cannot remove "+r.String(), "delete", r.resource.Resource)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Sweep removes what runs left behind that are over: killed on this machine, or past their time. It looks in
// the namespaces named and at what is in none, and returns the runs it removed.
func (c *Cluster) Sweep(ctx context.Context, namespaces ...string) (runs []string, err error) {
	list, err := c.labelled(ctx, ManagedBy+"="+manager+","+RunLabel, places(nil, namespaces))
	if err != nil {
		return nil, err
	}
	over := map[string]bool{}
	for _, r := range list {
		u, err := c.client(r).Get(ctx, r.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue // gone by itself
		}
		if err != nil {
			return nil, explain(err, "cannot look at "+r.String(), "get", r.resource.Resource)
		}
		notes := u.GetAnnotations()
		if gone("/proc", notes[ownerNote], notes[untilNote], time.Now()) {
			over[u.GetLabels()[RunLabel]] = true
		}
	}
	for _, run := range slices.Sorted(maps.Keys(over)) {
		if err := c.Remove(ctx, run, namespaces...); err != nil {
			return runs, errors.Join(err, fmt.Errorf("run %s was interrupted and is still in the cluster", run))
		}
		runs = append(runs, run)
	}
	return runs, nil
}
