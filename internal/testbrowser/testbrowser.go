// Package testbrowser drives a real Chromium in tests of pages, and holds what it shows against the rules of axe-core.
package testbrowser

import (
	"context"
	_ "embed" // for axe
	"fmt"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// axe is the library; README.md says which.
//
//go:embed axe.min.js
var axe string

// find skips the test where there is no browser.
func find(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium found: `make setup` installs it")
	return ""
}

// Browser is one headless Chromium, and what its page complained about or asked for.
type Browser struct {
	Ctx        context.Context
	mu         sync.Mutex // guards what follows: events come on another goroutine
	complaints []string
	requests   []string
}

// New starts a browser whose files, too, live in a folder of the test.
func New(t *testing.T) *Browser {
	t.Helper()
	// chromedp has the browser killed when the thread that forked it ends. Any other goroutine could end that one, by being
	// locked to it at its own end (internal/serve does): it is this test's until the test ends.
	goruntime.LockOSThread()
	path, home := find(t), t.TempDir()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(filepath.Join(home, "profile")),
		chromedp.Env("TMPDIR="+home, "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home),
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-dev-shm-usage", true))
	parent, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // for all pages, on a busy machine too
	t.Cleanup(cancel)
	allocator, cancel := chromedp.NewExecAllocator(parent, options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	t.Cleanup(func() { // before the others: waits until the browser has ended and let go of its folder
		if err := chromedp.Cancel(ctx); err != nil {
			t.Error(err)
		}
	})
	b := &Browser{Ctx: ctx}
	chromedp.ListenTarget(ctx, b.listen)
	b.Run(t, network.Enable(), runtime.Enable(), log.Enable())
	return b
}

// listen collects errors of the console, exceptions, and everything that is asked for.
func (b *Browser) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		for _, arg := range e.Args {
			b.complaints = append(b.complaints, fmt.Sprintf("console.%s: %s", e.Type, arg.Value))
		}
	case *log.EventEntryAdded: // what the browser itself says: a breach of the page's policy, a file not found
		b.complaints = append(b.complaints, e.Entry.Text)
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	}
}

// Heard returns what the page complained about and asked for since it was called last.
func (b *Browser) Heard() (complaints, requests []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	complaints, requests = b.complaints, b.requests
	b.complaints, b.requests = nil, nil
	return complaints, requests
}

// Run runs actions.
func (b *Browser) Run(t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(b.Ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// Eval evaluates JavaScript on the page into v.
func (b *Browser) Eval(t *testing.T, js string, v any) {
	t.Helper()
	if err := chromedp.Run(b.Ctx, chromedp.Evaluate(js, v)); err != nil {
		t.Fatalf("%s: %v", js, err)
	}
}

// Poll waits until an expression holds.
func (b *Browser) Poll(t *testing.T, js string) {
	t.Helper()
	if err := chromedp.Run(b.Ctx, chromedp.Poll(js, nil, chromedp.WithPollingTimeout(20*time.Second))); err != nil {
		t.Fatalf("%s: %v", js, err)
	}
}

// Scheme has pages drawn in light or dark colours.
func (b *Browser) Scheme(t *testing.T, value string) {
	t.Helper()
	b.Run(t, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}}))
}

// Wide tells what makes the page scroll sideways at a width in pixels; "" where nothing does.
func (b *Browser) Wide(t *testing.T, width int64) string {
	t.Helper()
	var scroll int64
	b.Run(t, chromedp.EmulateViewport(width, 800))
	if b.Eval(t, `document.documentElement.scrollWidth`, &scroll); scroll <= width {
		return ""
	}
	var culprits string
	b.Eval(t, `[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth && !e.closest('.scroll,pre')).
		map(e => e.tagName + '#' + e.id).join(' ')`, &culprits)
	return fmt.Sprintf("at %d px the page is %d px wide: %s", width, scroll, culprits)
}

// Accessible holds the page, as it is shown, against the rules of axe-core.
func (b *Browser) Accessible(t *testing.T) {
	t.Helper()
	const run = `axe.run({resultTypes: ['violations']}).then(r => r.violations.map(v => v.id + ': ' + v.help + ': ' + v.nodes.slice(0, 3).map(n => n.target.join(' ') + ' ' + n.failureSummary).join('; ')))`
	var loaded bool
	if b.Eval(t, `typeof axe !== 'undefined'`, &loaded); !loaded {
		b.Eval(t, axe+`;true`, &loaded)
	}
	var violations []string
	b.Run(t, chromedp.Evaluate(run, &violations, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	if len(violations) > 0 {
		t.Errorf("axe finds:\n%s", strings.Join(violations, "\n"))
	}
}
