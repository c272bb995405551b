package move

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/time/rate"
)

// sums returns the SHA-256 of files of the source, a line each as sha256sum --check reads them. It is done once
// the server runs again: nobody writes to the place that it has left.
func (c *copier) sums(ctx context.Context, files []file) (string, error) {
	var mu sync.Mutex
	seen := map[string]string{}
	err := c.each(ctx, files, func(ctx context.Context, f file) error {
		from, err := open(c.from, f.name, os.O_RDONLY)
		if err != nil {
			return err
		}
		defer from.Close()
		hash := sha256.New()
		if _, err := io.CopyBuffer(struct{ io.Writer }{hash}, readerOf{ctx, from, c.limit}, make([]byte, chunk)); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		seen[f.name] = sumLine(hash.Sum(nil), f.name)
		return nil
	})
	var text strings.Builder
	for _, f := range files {
		text.WriteString(seen[f.name])
	}
	return text.String(), err
}

// sumLine is a line as sha256sum writes it: a name with a line's end or a backslash is escaped, which a backslash before the sum tells.
func sumLine(sum []byte, name string) string {
	escaped := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`).Replace(name)
	mark := ""
	if escaped != name {
		mark = `\`
	}
	return fmt.Sprintf("%s%x  %s\n", mark, sum, escaped)
}

// readerOf reads until its context ends, a chunk at a time at most.
type readerOf struct {
	ctx   context.Context
	f     *os.File
	limit *rate.Limiter
}

func (r readerOf) Read(b []byte) (int, error) {
	n, err := r.f.Read(b[:min(len(b), chunk)])
	if late := r.limit.WaitN(r.ctx, n); late != nil {
		return n, errors.Join(late, context.Cause(r.ctx))
	}
	return n, err
}
