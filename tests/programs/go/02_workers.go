package workers

import "sync"
import "time"

type job struct {
	id    int
	input string
	reply chan<- result
}

type result struct {
	id    int
	value int
	err   error
}

type (
	source <-chan job
	sink   chan<- result
	quit   chan struct{}
)

const queue = 1 << 4

// Pool runs jobs on a fixed number of goroutines until Close is called.
type Pool struct {
	sync.Mutex
	jobs   chan job
	done   chan struct{}
	group  sync.WaitGroup
	failed map[int]error
}

func (p *Pool) Start(workers int) {
	p.jobs = make(chan job, queue)
	p.done = make(chan struct{})
	p.failed = map[int]error{}
	for i := 0; i < workers; i++ {
		p.group.Add(1)
		go func(number int) {
			defer p.group.Done()
			p.loop(number)
		}(i)
	}
}

func (p *Pool) loop(number int) {
	ticker := time.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()
	idle := 0
	for {
		select {
		case task, ok := <-p.jobs:
			if !ok {
				return
			}
			idle = 0
			p.run(number, task)
		case <-ticker.C:
			idle++ /* nobody wants us */
		case <-p.done:
			return
		}
		if idle > 40 {
			break
		}
	}
}

func (p *Pool) run(number int, task job) {
	defer func() {
		if r := recover(); r != nil {
			p.Lock()
			defer p.Unlock()
			p.failed[task.id] = r.(error)
		}
	}()
	value := 0
	for _, letter := range task.input {
		value = value*31 + int(letter-'a')&0xFF
	}
	select {
	case task.reply <- answer(task.id, value, nil):
	default:
		// the reader went away: drop the answer
	}
}

func answer(id, value int, err error) result {
	var r result
	r.id, r.value, r.err = id, value, err
	return r
}

func (p *Pool) Close() {
	close(p.jobs)
	go func() {
		time.Sleep(3 * time.Second)
		close(p.done)
	}()
	p.group.Wait()
}
