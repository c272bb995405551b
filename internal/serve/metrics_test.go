package serve

import (
	"encoding/json"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"david/internal/result"
)

func scrape(t *testing.T, home string) string {
	t.Helper()
	w := httptest.NewRecorder()
	Metrics(home).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// TestMetrics: what is on is told with its figures, and afterwards that nothing is.
func TestMetrics(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if got := scrape(t, home); !strings.Contains(got, "\ndavid_measuring 0\n") || strings.Contains(got, "david_ratio") {
		t.Errorf("with nothing on:\n%s", got)
	}
	store := put(t, home, "compare-1", 1, 2)
	note := func(m result.Moment) {
		t.Helper()
		if err := store.Note(m); err != nil {
			t.Fatal(err)
		}
	}
	note(result.Moment{At: time.Now(), Arm: "tuned", Phase: result.Confirm, Round: 12, Left: 300, Point: &result.Point{TPS: 204, P95: 41}})
	note(result.Moment{At: time.Now(), Line: "a result"})
	got := scrape(t, home)
	for _, want := range []string{"david_measuring 1", `david_run_info{experiment="compare-1",kind="compare"} 1`, `david_arm_info{arm="tuned",phase="confirm"} 1`,
		`david_transactions_per_second{arm="tuned"} 204`, `david_latency_p95_seconds{arm="tuned"} 0.041`, "david_warming_up 0", "david_round 12",
		`david_arm_rounds{arm="tuned"} 12`, `david_ratio{arm="tuned"} 2`, `david_ratio_low{arm="tuned"} `, `david_ratio_high{arm="tuned"} `, "david_time_left_seconds 299"} {
		if !strings.Contains(got, "\n"+want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	note(result.Moment{At: time.Now().Add(-time.Minute), Arm: "tuned", Point: &result.Point{TPS: 204}})
	if got := scrape(t, home); strings.Contains(got, "\ndavid_transactions_per_second{") {
		t.Errorf("a second of a minute ago is told as the present one:\n%s", got)
	}
	if err := store.Finish(result.Finish{}); err != nil {
		t.Fatal(err)
	}
	if got := scrape(t, home); !strings.Contains(got, "\ndavid_measuring 0\n") {
		t.Errorf("after its end:\n%s", got)
	}
}

// TestDashboard: the dashboard asks for figures that there are, each panel in a place of its own.
func TestDashboard(t *testing.T) {
	t.Parallel()
	var d struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(Dashboard()), &d); err != nil || len(d.Panels) == 0 {
		t.Fatalf("%d panels, %v", len(d.Panels), err)
	}
	there := map[string]bool{}
	for _, desc := range described() {
		there[regexp.MustCompile(`fqName: "([a-z0-9_]+)"`).FindStringSubmatch(desc.String())[1]] = true
	}
	used := regexp.MustCompile(`david_[a-z0-9_]+`).FindAllString(Dashboard(), -1)
	for _, name := range used {
		if !there[name] {
			t.Errorf("the dashboard asks for %s", name)
		}
	}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s lies over %q or beside the page", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}
