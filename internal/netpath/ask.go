package netpath

import (
	"context"
	"fmt"
	"strings"

	"david/internal/mysqld"
)

// talkPart is an answer, or a question, that every server takes.
const talkPart = Bytes / 16

// Ask has the server say over one of its connections whom it sees and where it listens, and makes that
// connection the one that is talked over.
func (v *Visit) Ask(ctx context.Context, one *mysqld.Single) error {
	rows, err := one.Rows(ctx, 2, "SELECT HOST, @@port FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()")
	if err != nil {
		return err
	}
	if len(rows) == 1 {
		v.SeenAs, v.Port = rows[0][0], rows[0][1]
	}
	status, err := one.Pairs(ctx, "SHOW SESSION STATUS LIKE 'Ssl_%'")
	if err != nil {
		return err
	}
	if v.TLS = "none"; status["ssl_version"] != "" {
		v.TLS = fmt.Sprintf("%s (%s)", status["ssl_version"], status["ssl_cipher"])
	}
	v.Talk = func(ctx context.Context) error { return talk(ctx, one) }
	return nil
}

// talk has Bytes sent each way.
func talk(ctx context.Context, one *mysqld.Single) error {
	ask, tell := fmt.Sprintf("SELECT REPEAT('x', %d)", talkPart), "DO LENGTH('"+strings.Repeat("x", talkPart)+"')"
	for range Bytes / talkPart {
		if _, err := one.Rows(ctx, 1, ask); err != nil {
			return err
		}
		if err := one.Exec(ctx, tell); err != nil {
			return err
		}
	}
	return nil
}
