package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"david/internal/manifest/operator"
	"david/internal/manifest/render"
	"david/internal/manifest/stream"
	"david/internal/mycnf"
)

// Unappliable says what of a folder's new files cannot be applied to a cluster that has the earlier ones, and
// what to do; "" where nothing is in the way. It compares the two renderings, file by file, and knows of no
// cluster. An object of another name or namespace is another object.
func Unappliable(before, now map[string][]byte) string {
	if why := deserted(before, now); why != "" {
		return why
	}
	for _, file := range slices.Sorted(maps.Keys(now)) {
		was, there := firstObject(before[file])
		is, _ := firstObject(now[file])
		if !there || was.Object() != is.Object() {
			continue
		}
		if why := volumes(was, is, before); why != "" {
			return why
		}
		for _, path := range fixedFields()[is.Kind()] {
			if !reflect.DeepEqual(was.Get(path), is.Get(path)) {
				return fmt.Sprintf("%s has %s %s, and this would be %s: an API server refuses to change it; %s", is.Object(), path, asJSON(was.Get(path)), asJSON(is.Get(path)), instead(is))
			}
		}
	}
	return ""
}

// pageLine matches a line of a my.cnf with the page size.
var pageLine = regexp.MustCompile(`(?m)^[^#\n]*\binnodb_page_size\b["']?\s*[=:]\s*["']?(\w+)`)

// PageSize returns the page size in a folder's files, in the words of mycnf.FormatSize; the default where
// none says it.
func PageSize(files map[string][]byte) string {
	for _, content := range files {
		if m := pageLine.FindSubmatch(content); m != nil {
			if n, err := mycnf.ParseSize(string(m[1])); err == nil {
				return mycnf.FormatSize(n)
			}
		}
	}
	return mycnf.FormatSize(int64(mycnf.PageSize(nil)))
}

// deserted says which database the earlier files make and the new ones do not: it would run on beside the new
// one, and no file would tell.
func deserted(before, now map[string][]byte) string {
	databases := func(files map[string][]byte) (list []string) {
		for _, file := range slices.Sorted(maps.Keys(files)) {
			if d, ok := firstObject(files[file]); ok && claimPath(d) != "" {
				list = append(list, d.Object())
			}
		}
		return list
	}
	for _, was := range databases(before) {
		if is := databases(now); !slices.Contains(is, was) {
			return fmt.Sprintf("it makes %s, and this would be %s: where the first was applied it would run on beside it; %s", was, strings.Join(is, ", "), anew)
		}
	}
	return ""
}

// fixedFields lists those that an API server refuses to change, by kind, of what david renders: Kubernetes
// 1.34, ValidateStatefulSetUpdate (pkg/apis/apps/validation), ValidateStorageClassUpdate
// (pkg/apis/storage/validation), ValidatePersistentVolumeUpdate (pkg/apis/core/validation).
func fixedFields() map[string][]string {
	return map[string][]string{
		"StatefulSet":      {"spec.selector", "spec.serviceName", "spec.volumeClaimTemplates"},
		"StorageClass":     {"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"},
		"PersistentVolume": {"spec.local", "spec.nodeAffinity", "spec.volumeMode"},
	}
}

// instead says what to do where a fixed field would change.
func instead(d stream.Document) string {
	if d.Kind() == "StorageClass" {
		return "kubectl delete storageclass " + d.Name() + " first, which leaves its volumes as they are"
	}
	return anew
}

// anew says how to have what a volume, or an object, cannot become.
const anew = "make a database of another --name in a folder of its own, and copy the data"

// volumes tells what a volume cannot do: shrink (Kubernetes 1.34, ValidatePersistentVolumeClaimUpdate), or
// change its class. A larger one takes steps with a StatefulSet; operators have ways of their own.
func volumes(was, is stream.Document, before map[string][]byte) string {
	path := claimPath(is)
	if path == "" {
		return ""
	}
	class, newClass := stream.Text(was.Get(path+".storageClassName")), stream.Text(is.Get(path+".storageClassName"))
	size, _ := was.Bytes(path + ".resources.requests.storage")
	newSize, _ := is.Bytes(path + ".resources.requests.storage")
	switch {
	case class != newClass:
		return fmt.Sprintf("the data of %s are %s, and this would put them %s: a volume stays what it is; %s%s", is.Object(), place(class), place(newClass), anew, keepClass(class))
	case newSize < size:
		return fmt.Sprintf("the volumes of %s have %s, and this would be %s: a volume cannot shrink; give --size %s or more, or %s", is.Object(), render.Mebi(size), render.Mebi(newSize), render.Mebi(size), anew)
	case newSize > size && is.Kind() == "StatefulSet":
		return grow(is, size, newSize, before)
	}
	return ""
}

// claimPath tells where an object has the spec of the claim for its data; "" where it has none that david
// knows.
func claimPath(d stream.Document) string {
	if d.Kind() == "StatefulSet" {
		return "spec.volumeClaimTemplates[0].spec"
	}
	view, ok := operator.ViewOf(d)
	if !ok {
		return ""
	}
	return strings.TrimSuffix(view.Class, ".storageClassName")
}

// place says where data lie, for a sentence; without a class they are in a folder of the node.
func place(class string) string {
	if class == "" {
		return "in a folder of the node (--host-path)"
	}
	return "on volumes of class " + class
}

// keepClass says how the folder is rendered with the class that it has.
func keepClass(class string) string {
	if class == "" {
		return ""
	}
	return ", or keep the class with --storage " + render.ClassPrefix + class
}

// grow says how the volumes of a StatefulSet are made larger: by their claims, as the API server refuses to
// change its volumeClaimTemplates.
func grow(set stream.Document, from, to int64, before map[string][]byte) string {
	why := fmt.Sprintf("the volumes of %s have %s, and this would be %s: an API server refuses to change the volumeClaimTemplates of a StatefulSet", set.Object(), render.Mebi(from), render.Mebi(to))
	if class, ok := firstObject(before["storageclass.yaml"]); ok && class.Get("allowVolumeExpansion") == false {
		return fmt.Sprintf("%s, and volumes of class %s cannot grow; %s", why, class.Name(), anew)
	}
	return fmt.Sprintf(`%s; in a cluster that runs it kubectl -n %s patch pvc data-%s-0 -p '{"spec":{"resources":{"requests":{"storage":"%s"}}}}', and so each replica's, then kubectl -n %s delete statefulset %s --cascade=orphan, which leaves pods and data, then render with --force and apply`,
		why, set.Namespace(), set.Name(), render.Amount(to), set.Namespace(), set.Name())
}

// firstObject finds the first object of a file; ok is false where there is none.
func firstObject(text []byte) (d stream.Document, ok bool) {
	docs, _ := stream.Documents("", text)
	if len(docs) == 0 {
		return d, false
	}
	return docs[0], true
}

// asJSON writes a value in one line.
func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
