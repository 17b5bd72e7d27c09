// River on PostgreSQL: COPY to enqueue in batches, and the worker settings of its own benchmark command.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

type settings struct {
	MaxWorkers, FetchCooldownMs, FetchPollIntervalMs, EnqueueBatch int
}

var task struct {
	Do, URL, Starts     string
	Jobs, Rate, Seconds int
	Settings            settings
}

type job struct {
	N     int   `json:"n"`
	Meant int64 `json:"meant"`
}

func (job) Kind() string { return "noop" }

type worker struct {
	river.WorkerDefaults[job]
	starts *os.File
}

func (w *worker) Work(_ context.Context, it *river.Job[job]) error {
	_, err := fmt.Fprintf(w.starts, "%9d %16d %16d\n", it.Args.N, it.Args.Meant, nowUs())
	return err
}

func nowUs() int64 { return time.Now().UnixMicro() }

func answer(line map[string]any) {
	text := must(json.Marshal(line))
	fmt.Println(string(text))
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func insert(ctx context.Context, client *river.Client[pgx.Tx], jobs []job) error {
	params := make([]river.InsertManyParams, len(jobs))
	for i, it := range jobs {
		params[i] = river.InsertManyParams{Args: it}
	}
	_, err := client.InsertManyFast(ctx, params)
	return err
}

func main() {
	check(json.Unmarshal([]byte(os.Args[1]), &task))
	ctx := context.Background()
	pool := must(pgxpool.New(ctx, task.URL))
	driver := riverpgxv5.New(pool)
	config := &river.Config{Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))}
	switch task.Do {
	case "prepare":
		must(must(rivermigrate.New(driver, nil)).Migrate(ctx, rivermigrate.DirectionUp, nil))
		client := must(river.NewClient(driver, config))
		for from := 0; from < task.Jobs; from += task.Settings.EnqueueBatch {
			var batch []job
			for n := from; n < min(task.Jobs, from+task.Settings.EnqueueBatch); n++ {
				batch = append(batch, job{N: n})
			}
			check(insert(ctx, client, batch))
		}
		answer(map[string]any{"prepared": task.Jobs})
	case "offer":
		offer(ctx, must(river.NewClient(driver, config)))
	case "work":
		work(ctx, driver, config)
	case "left":
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			var left int
			check(pool.QueryRow(ctx, "select count(*) from river_job where state <> 'completed'").Scan(&left))
			answer(map[string]any{"left": left, "at_us": nowUs()})
		}
	}
}

// Offers Rate jobs a second in an open loop: what is due on a tick is one batch, eight are under way at most.
func offer(ctx context.Context, client *river.Client[pgx.Tx]) {
	begin, total := nowUs()+1_000_000, task.Rate*task.Seconds
	room := make(chan struct{}, 8)
	var sent sync.WaitGroup
	var offered atomic.Int64
	for next := 0; next < total; time.Sleep(4 * time.Millisecond) {
		select {
		case room <- struct{}{}:
		default:
			continue
		}
		var due []job
		for now := nowUs(); next < total; next++ {
			meant := begin + int64(next)*1_000_000/int64(task.Rate)
			if meant > now {
				break
			}
			due = append(due, job{N: next, Meant: meant})
		}
		sent.Go(func() {
			defer func() { <-room }()
			if len(due) == 0 {
				return
			}
			if err := insert(ctx, client, due); err != nil {
				fmt.Fprintln(os.Stderr, "error:", err)
				return
			}
			offered.Add(int64(len(due)))
		})
	}
	sent.Wait()
	answer(map[string]any{"offered": offered.Load()})
}

func work(ctx context.Context, driver *riverpgxv5.Driver, config *river.Config) {
	starts := must(os.OpenFile(task.Starts, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644))
	config.Workers = river.NewWorkers()
	river.AddWorker(config.Workers, &worker{starts: starts})
	config.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: task.Settings.MaxWorkers}}
	config.FetchCooldown = time.Duration(task.Settings.FetchCooldownMs) * time.Millisecond
	config.FetchPollInterval = time.Duration(task.Settings.FetchPollIntervalMs) * time.Millisecond
	client := must(river.NewClient(driver, config))
	answer(map[string]any{"began_us": nowUs()})
	check(client.Start(ctx))
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
	}
	check(client.Stop(ctx))
	answer(map[string]any{"stopped": true})
}
