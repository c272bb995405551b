// The modules that carry the operators' custom resource definitions, for tests only: a module of its own, so that david's
// own requirements stay small. Nothing of them is compiled. "go mod tidy" would remove them: do not run it here.
module david/test/crds

go 1.25.0

require (
	github.com/apecloud/kubeblocks v1.0.0
	github.com/cybozu-go/moco v0.26.0
	github.com/kubernetes-csi/external-snapshotter/client/v8 v8.7.0
	github.com/percona/percona-xtradb-cluster-operator v1.17.0
	github.com/rook/rook v1.18.0
	go.yaml.in/yaml/v3 v3.0.6
)
