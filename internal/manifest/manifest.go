// Package manifest renders what to deploy: the Kubernetes objects of a MySQL or MariaDB server that runs in a
// pod with the configuration that a tune found. It is pure: a request in, objects out; nothing here talks to
// a cluster, reads a clock or makes a password. The same request always gives the same bytes.
//
//	render.Request -> Render (package render: a server that no operator manages; package operator: custom resources) ->
//	render.Folder or render.Encode (package stream: YAML with comments) -> Unappliable (against what was rendered before)
//
// Package check reads a stream back, and judges it and those of others.
package manifest

import (
	"david/internal/manifest/operator"
	"david/internal/manifest/render"
)

// Render gives the objects of a request in the order in which they are to be applied. Its errors wrap
// render.ErrBad where the request makes no sense.
func Render(req render.Request) ([]render.Object, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	if req.Flavor == render.StatefulSet {
		return render.Unmanaged(req)
	}
	return operator.Render(req)
}

// Notes says what the user has to know of a request: what became of tuned lines that the my.cnf does not have
// as they were, what is replicated, and what the operator does not take; one sentence each.
func Notes(req render.Request) ([]string, error) {
	notes, err := render.Notes(req)
	if err != nil {
		return notes, err
	}
	more, err := operator.Notes(req)
	return append(notes, more...), err
}
