package hostile

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"david/internal/mycnf"
)

// generatedManifests is how many mutations of sound manifests there are.
const generatedManifests = 200

// manifests are what manifest check is given: by hand (testdata), names and values in fields, and mutations of a sound
// stack. Those by hand whose name begins with "unsafe" have to be refused.
func manifests(number uint64) (list []hostile) {
	add := func(name, text string) {
		h := hostile{class: "manifest", name: name, secret: "hunter2", files: map[string]string{"x/x.yaml": text}, args: []string{"manifest", "check", "{dir}/x"}}
		if strings.HasPrefix(name, "unsafe") {
			h.class, h.codes = "manifest, unsafe storage", []int{2}
		}
		list = append(list, h)
	}
	sound := serverPod(mycnf.MySQL, "") + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: cnf, namespace: db}\ndata: {my.cnf: \"[mysqld]\\nsync_binlog=1\\n\"}\n"
	for name, text := range byHand("manifests.txt") {
		add(name, text)
	}
	for i, name := range hostileNames() {
		add(fmt.Sprintf("name %03d", i), strings.Replace(sound, []string{"name: server", "name: db", "mysql:9.7", "mountPath: /var/lib/mysql", "name: cnf"}[i%5],
			[]string{"name: ", "name: ", "", "mountPath: ", "name: "}[i%5]+quoted(name), 1))
	}
	for i, value := range hostileValues() {
		old := []string{"cpu: 2", "memory: 2Gi", "failureThreshold: 360", "storage: 10Gi", "terminationGracePeriodSeconds: 600", "sync_binlog=1"}[i%6]
		fresh := "sync_binlog=" + strings.Trim(quoted(value), `"`)
		if key, _, field := strings.Cut(old, ":"); field {
			fresh = key + ": " + quoted(value)
		}
		add(fmt.Sprintf("value %03d", i), strings.Replace(sound, old, fresh, 1))
	}
	for i := range generatedManifests {
		w := writer{rand.New(rand.NewPCG(number, 1<<43+uint64(i)))}
		add(fmt.Sprintf("mutation %03d", i), w.mutatedYAML(sound))
	}
	return list
}
