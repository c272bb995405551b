package check

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Kustomization reads a kustomization.yaml: the resources it names, and what else it asks for, which david
// does not apply.
func Kustomization(name string, text []byte) (resources, unseen []string, err error) {
	var k map[string]any
	if err := yaml.Unmarshal(text, &k); err != nil {
		return nil, nil, err
	}
	named, _ := k["resources"].([]any)
	for _, r := range named {
		resources = append(resources, fmt.Sprint(r))
	}
	for _, key := range []string{"patches", "patchesStrategicMerge", "patchesJson6902", "components", "configMapGenerator", "secretGenerator", "helmCharts", "namePrefix", "nameSuffix",
		"namespace", "images", "replicas", "commonLabels", "labels", "replacements", "transformers", "generators"} {
		if _, there := k[key]; there {
			unseen = append(unseen, fmt.Sprintf("%s of %s: david does not apply it; check the output of kubectl kustomize instead", key, name))
		}
	}
	return resources, unseen, nil
}

// NoFile says that a resource of a kustomization is a folder or lies elsewhere, and is not read.
func NoFile(kustomization, resource string) string {
	return fmt.Sprintf("resource %s of %s: david reads files only; check the output of kubectl kustomize instead", resource, kustomization)
}
