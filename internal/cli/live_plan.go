package cli

import (
	"context"
	"errors"
	"fmt"

	"david/internal/advice"
	"david/internal/live"
	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/rules"
)

// liveDocument holds the output of david tune --dsn --json.
type liveDocument struct {
	Flavour  mycnf.Flavour `json:"flavour"`
	Version  string        `json:"version"`
	Of       string        `json:"of"`       // the server's address
	Hardware []string      `json:"hardware"` // what is known of it, with units
	result.LivePlan
	// Barred is why david does not change this server; then Group has the commands for whoever may.
	Barred string                `json:"barred,omitempty"`
	Group  *rules.ParameterGroup `json:"parameter_group,omitempty"`
	Load   *result.Workload      `json:"load,omitempty"` // david's own, --load
	Run    *result.LiveOutcome   `json:"run,omitempty"`
	Dir    string                `json:"dir,omitempty"` // of the record, for david rollback
}

// seeLive sees the server as david audit does, and its hardware as far as it is here or told by flags.
func (a *app) seeLive(ctx context.Context, f tuneFlags) (known advice.Facts, doc liveDocument, err error) {
	addr, err := a.remoteAddr(f.live.serverFlags)
	if err != nil {
		return known, doc, err
	}
	if known, err = a.lab().SeeServer(ctx, addr, f.memory != ""); err != nil {
		return known, doc, err
	}
	if err := f.told(&known.Machine); err != nil {
		return known, doc, err
	}
	known.Machine.Pod = f.relay
	return known, liveDocument{Flavour: known.Flavour, Version: known.Version.String(), Of: addr.String(), Hardware: known.Machine.Words()}, nil
}

// bar finds out whether david may change the server: a replica or a read-only server it may not, nor one that
// denies SET GLOBAL. Where it may not the document has the commands that others give.
func bar(ctx context.Context, conn *mysqld.Conn, srv live.Server, doc *liveDocument) (barred, err error) {
	var names []string
	for _, step := range doc.Steps {
		for _, c := range step.Changes {
			names = append(names, c.Name)
		}
	}
	why, seen, err := live.Follows(ctx, conn, srv)
	if err != nil {
		return nil, err
	}
	if !seen {
		doc.Notes = append(doc.Notes, "whether it is a replica is not seen: that takes the privilege REPLICATION CLIENT (MariaDB: REPLICA MONITOR)")
	}
	if why != "" {
		barred = fmt.Errorf("%s has %s: tune its primary, or set the variables there by hand", doc.Of, why)
	} else if err := live.MaySet(ctx, conn, names); errors.Is(err, mysqld.ErrUnreachable) {
		return nil, err
	} else if err != nil {
		barred = fmt.Errorf("SET GLOBAL is denied on %s (it takes SYSTEM_VARIABLES_ADMIN or SUPER): %w", doc.Of, err)
	}
	if barred != nil {
		group := rules.RenderGroup(doc.LivePlan)
		doc.Barred, doc.Group = barred.Error(), &group
	}
	return barred, nil
}
