package experiment

import (
	"fmt"
	"strings"

	"david/internal/result"
)

// The limits of the gates. Ignored errors are deadlocks and lock timeouts, which small write-heavy tables have by
// nature; above one in a hundred the workload measures retries. Steal is CPU time the hypervisor gave to others.
const (
	errorShareMax = 0.01
	stealShareMax = 0.05
)

// gates judges whether a trial may count.
func gates(t result.Trial, sameServer bool, steal float64) []result.Gate {
	share := 0.0
	if t.Transactions > 0 {
		share = float64(t.Errors) / float64(t.Transactions)
	}
	return []result.Gate{
		{Name: "transactions", OK: t.Transactions > 0, Detail: fmt.Sprintf("%d completed", t.Transactions)},
		{Name: "errors", OK: share <= errorShareMax,
			Detail: fmt.Sprintf("%d errors in %d transactions (limit 1 %%)", t.Errors, t.Transactions)},
		{Name: "reconnects", OK: t.Reconnects == 0, Detail: fmt.Sprintf("%d connections were lost", t.Reconnects)},
		{Name: "same server", OK: sameServer, Detail: "the server that was started is the one that answered at the end"},
		{Name: "steal", OK: steal <= stealShareMax,
			Detail: fmt.Sprintf("%.1f %% of the CPU time went to other guests (limit 5 %%)", 100*steal)},
	}
}

// durability judges what of the durability lock differs between an arm and the one it is compared with: speed that one of
// them bought with lost data is no speed.
func durability(differ []string) result.Gate {
	if len(differ) > 0 {
		return result.Gate{Name: "durability", Detail: "not the control's: " + strings.Join(differ, ", ")}
	}
	return result.Gate{Name: "durability", OK: true, Detail: "the lock's settings are the control's"}
}
