package netpath

import (
	"context"
	"fmt"
	"strings"
	"time"

	"david/internal/mysqld"
)

const (
	// talkPart is an answer, or a question, that every server takes.
	talkPart = Bytes / 16
	// talkPatience is how long one of each may take: a line of 1 Mbit/s carries both in 4 s. What is lost for good
	// is sent again for a quarter of an hour, by the kernel's defaults.
	talkPatience = 6 * time.Second
)

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
	for range Bytes / talkPart {
		if err := talkOnce(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

func talkOnce(ctx context.Context, one *mysqld.Single) error {
	late := fmt.Errorf("%d KiB each way had not arrived after %s", talkPart>>10, talkPatience)
	ctx, cancel := context.WithTimeoutCause(ctx, talkPatience, late)
	defer cancel()
	_, err := one.Rows(ctx, 1, fmt.Sprintf("SELECT REPEAT('x', %d)", talkPart))
	if err == nil {
		err = one.Exec(ctx, "DO LENGTH ('"+strings.Repeat("x", talkPart)+"')") // an error quotes the first two words
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
