// 服务器以代码讲述的事情，用中文说。What the server tells in codes, in Chinese: why a run is where it is, what happened to it,
// what to do, and what became of due times. Facts come from the run and the event; a code without words does not compile.
import type { Attempt, Explained, ExplainedCause, ExplainedHappening, ExplainedRemedy, Run, RunExplanationEvent, Worker, WorkerState } from '../api/schema';
import { duration, shownTime } from '../ui/time';
import type { Told } from './told';
import { PROBLEMS } from './zh_problems';

const at = (time: string | null | undefined) => (time ? shownTime(time, 'zh') : '稍后');
const ms = (from: string, to: string) => duration(Math.max(0, Date.parse(to) - Date.parse(from)));
const last = (run: Run): Attempt | undefined => run.attempts.at(-1);
const worker = (run: Run) => last(run)?.worker ?? '';
const number = (run: Run) => last(run)?.number ?? 1;
const failures = (run: Run) => run.attempts.filter((attempt) => attempt.end && ['failed', 'timed_out'].includes(attempt.end.outcome)).length;
const who = (run: Run) => run.cancel?.actor ?? '有人';

const CAUSES: Record<ExplainedCause, (run: Run) => string> = {
  waits_for_its_time: (run) => `它在等待启动时刻：${at(run.not_before ?? run.due)}。`,
  waits_for_its_turn: () => '它在作业的队列中等待：同一作业的其他运行尚未结束。',
  breaker_open: () => '作业的熔断器已打开，或正在用另一个运行试探；它在队列中等待。',
  waits_to_be_tried_again: (run) => `第 ${number(run)} 次尝试没有成功，等待再次尝试：${at(run.not_before)}。`,
  waits_put_off: (run) => `处理函数把它推迟到 ${at(run.not_before)}。这不算失败。`,
  waits_for_room: () => '它已就绪，但所有合适的工作节点都没有空位。',
  waits_for_a_limit: () => '它已就绪，但正在运行的数量已达到限制。',
  waits_for_a_rate: () => '它已就绪，但启动速率已达到限制。',
  queue_paused: () => '它所在的队列已暂停，不放行任何运行。',
  waits_for_a_worker: () => '它已就绪，正在等待工作节点。',
  no_worker_connected: () => '没有连接任何工作节点。',
  no_worker_for_namespace: (run) => `没有工作节点服务命名空间 \`${run.namespace}\`。`,
  no_worker_offers_it: () => '没有工作节点提供它所需要的执行方式或处理函数。',
  too_heavy_for_every_worker: () => '它的权重超过了任何一个工作节点的容量。',
  workers_leaving: () => '能够执行它的工作节点都在维护中、没有消息或有故障。',
  given: (run) => `第 ${number(run)} 次尝试已交给工作节点 ${worker(run)}，对方尚未报告启动。`,
  running: (run) => `第 ${number(run)} 次尝试正在工作节点 ${worker(run)} 上运行${last(run)?.started ? `，始于 ${at(last(run)?.started)}` : ''}。`,
  worker_silent: (run) => `持有第 ${number(run)} 次尝试的工作节点 ${worker(run)} 没有连接。如果在租约结束前没有回来，该尝试视为丢失，并在别处重试。`,
  being_cancelled: (run) => `${who(run)} 请求取消它。工作节点 ${worker(run)} 停止第 ${number(run)} 次尝试后，或其租约结束后，它即结束。`,
  completed: (run) => (run.attempts.length > 1 ? `它在第 ${number(run)} 次尝试时成功，用时 ${duration(last(run)?.end?.duration_ms)}。` : `它在第一次尝试时成功，用时 ${duration(last(run)?.end?.duration_ms)}。`),
  failed_too_often: (run) => `它失败了 ${failures(run)} 次，\`retry.max_attempts\` 不允许再试。`,
  given_up: () => '任务自己放弃了，表示再试也没有用。',
  given_up_by_rule: () => '`retry.on` 中的规则说，这样的失败不再重试。',
  lost_too_often: () => '它的尝试随工作节点丢失的次数已达到 `retry.max_lost` 所允许的上限。',
  stopped_too_often: () => '执行它的工作节点在退出时停止了它，按照 `retry.max_lost` 不再重试，或停止的次数过多。',
  undelivered_too_often: () => '它多次被交给工作节点，却一次也没有启动。',
  put_off_too_often: () => '处理函数推迟它的次数过多。',
  start_timed_out: () => '在 `start_timeout` 规定的时间内没有工作节点接收它。',
  failed: () => '它失败了。',
  cancelled_while_waiting: (run) => `${who(run)} 在它等待时取消了它，或删除了它的作业。`,
  cancelled: (run) => (run.cancel ? `${who(run)} 请求取消它，工作节点 ${worker(run)} 已确认停止。` : '它被取消了。'),
  cancelled_unconfirmed: (run) => `${who(run)} 请求取消它。工作节点 ${worker(run)} 没有确认；其租约已结束，它不可能仍在运行。`,
  failed_for_others: () => '它到期时同一作业的运行已达上限，而作业规定 `overlap: fail`。',
  superseded: () => '按照作业的 `overlap`，一个更新的运行取代了它。',
  expired: () => '轮到它时，等待已超过作业的 `misfire.window`，因此没有启动。',
};

const attempt = (event: RunExplanationEvent) => (event.attempt === null ? '' : `第 ${event.attempt} 次尝试`);
const on = (event: RunExplanationEvent) => (event.worker === null ? '工作节点' : `工作节点 ${event.worker}`);

function ended(event: RunExplanationEvent, run: Run): string {
  const end = run.attempts.find((one) => one.number === event.attempt)?.end;
  if (!end) return '';
  const how = end.error ?? (end.signal !== null ? `信号 ${end.signal}` : end.exit_code !== null ? `退出码 ${end.exit_code}` : end.http_status !== null ? `HTTP ${end.http_status}` : '');
  return `，用时 ${duration(end.duration_ms)}${how && end.outcome !== 'succeeded' ? `：${how}` : ''}`;
}

/** Whether the run was cancelled with it. A worker that leaves stops attempts too, and says why. */
const isOnRequest = (event: RunExplanationEvent, run: Run) => run.transitions.some((step) => step.to === 'CANCELLED' && step.at === event.at);

const HAPPENINGS: Record<ExplainedHappening, (event: RunExplanationEvent, run: Run) => string> = {
  made: (event, run) => {
    const by = run.origin === 'schedule' ? `由调度产生${run.nominal ? `，对应 ${at(run.nominal)}` : ''}` : run.origin === 'after' ? `在 ${run.parent_run ?? '另一次运行'} 结束之后产生` : run.origin === 'backfill' ? `由补跑 ${run.backfill ?? ''} 产生` : `由 ${event.actor ?? run.actor} 产生`;
    return `${by}，采用作业的版本 ${run.job_version}。`;
  },
  repeats: (_, run) => `它重复已结束的 ${run.rerun_of ?? '运行'}。`,
  assigned: (event) => `${attempt(event)}交给了${on(event)}。`,
  moved: (event) => `${attempt(event)}转交给了${on(event)}。`,
  went_on_from_checkpoint: (event, run) => `${attempt(event)}从检查点 ${run.checkpoint?.number ?? ''} 继续。`,
  started: (event) => `${attempt(event)}已启动。`,
  started_late: (event, run) => `${attempt(event)}已启动，比到期晚 ${ms(run.due, event.at)}。`,
  checkpoint_saved: (event, run) => `${attempt(event)}保存了检查点 ${run.checkpoint?.number ?? ''}。`,
  cancel_requested: (event) => `${event.actor ?? '有人'} 请求取消它。`,
  succeeded: (event, run) => `${attempt(event)}成功${ended(event, run)}。`,
  failed: (event, run) => (event.attempt === null ? '同一作业的其他运行尚未结束：该运行失败。' : `${attempt(event)}失败${ended(event, run)}。`),
  timed_out: (event, run) => `${attempt(event)}超时，被停止${ended(event, run)}。`,
  lost: (event) => `${attempt(event)}丢失：${on(event)} 离开，或在整个租约期内没有心跳。任务进行到哪里不得而知。`,
  forgotten: (event) => `${attempt(event)}丢失：${on(event)} 已连接，但不再记得它，例如重启之后。`,
  undelivered: (event) => `${attempt(event)}在启动之前被退回，或没有到达${on(event)}。`,
  stopped: (event, run) => `${on(event)} 停止了${attempt(event)}${isOnRequest(event, run) ? '' : ended(event, run)}。`,
  put_off: (event) => `处理函数推迟了${attempt(event)}；这不算失败。`,
  start_timed_out: () => '等待已达到 `start_timeout` 所允许的时间。',
  cancelled: () => '该运行已取消，不再重试。',
  left_out: (_, run) => `此处略去若干步骤；\`drumtower run show ${run.id}\` 列出全部。`,
};

const REMEDIES: Record<ExplainedRemedy, string> = {
  nothing: '无需处理：它会自动继续。',
  read_output: '查看最后一次尝试的输出：',
  follow_output: '跟随它的输出：',
  look_at_workers: '查看工作节点的情况：',
  start_worker: '启动一个工作节点：',
  start_handler: '启动注册该处理函数的程序。现有的处理函数：',
  make_room: '增加空位：再启动一个工作节点，或加大 `--capacity`；更紧急时提高作业的 `priority`。',
  look_at_queue: '查看谁占用队列、有多少在等待：',
  resume_queue: '弄清队列为何暂停，然后恢复它：',
  reset_breaker: '原因排除后，让作业立即运行：',
  change_job: '修改作业的定义：',
  replace_run: '该运行保持当时的作业定义；修改之后请重新创建一个：',
  trigger_now: '如果现在也要运行一次：',
  cancel: '如果不需要它运行：',
  wait_for_the_end: '等待它结束：',
  run_again: '需要时再次运行：',
  go_on_from_checkpoint: '或者从它留下的检查点继续：',
  explain_the_run_before: '它所重复的运行的经过：',
  look_at_runs: '查看该作业的运行：',
};

const STATES: Record<string, string> = { PENDING: '等待中', SCHEDULED: '已分配', RUNNING: '运行中', COMPLETED: '已完成', FAILED: '失败', CANCELLED: '已取消' };

/** What became of a due time, by its fate and reason; what is not known here is told by the server's own words. */
function fate(row: Explained): string | null {
  const moved = row.moved_to ? `，移至 ${at(row.moved_to)}` : '';
  const FATES: Record<string, string> = {
    planned: '已计划',
    'planned paused': '作业暂停期间不会产生运行',
    pending: '时刻已到，即将决定',
    'pending paused': '作业已暂停；恢复时由 `on_resume` 决定',
    'unfired overlap': '同一作业的运行尚未结束',
    'unfired queue_full': '同一作业的运行尚未结束，排队的数量也已达到 `overlap` 的上限',
    'unfired breaker': '作业多次失败后熔断器已打开',
    'unfired paused': '作业已暂停',
    'unfired edited': '调度在决定之前被修改',
    'unfired misfire': '因无法触发而错过，`misfire` 不补跑这一时刻',
    'excluded calendar': `日历 ${row.calendar ?? ''} 排除了这一天${moved}`,
    'excluded dst_gap': `${row.timezone ?? ''} 的时钟跳过 ${row.local ?? ''}${moved}`,
    'excluded dst_fold': `${row.timezone ?? ''} 的时钟两次显示 ${row.local ?? ''}；以另一次为准`,
    'excluded before_start': '早于调度的起始界限',
    'excluded after_end': '晚于调度的结束界限',
    'excluded max_fires': '调度已产生规定数量的运行',
    'unknown retention': '已无从得知：早于保留期',
    'unknown unrecorded': '没有任何记录',
  };
  if (row.fate !== 'run') return FATES[[row.fate, row.reason].filter(Boolean).join(' ')] ?? null;
  const state = STATES[row.state ?? ''] ?? row.state ?? '';
  if (row.delay_ms === null) return row.state === 'PENDING' ? `${state}，等待工作节点或轮次` : `${state}，没有启动`;
  return row.delay_ms >= 0 ? `${state}，到期后 ${duration(row.delay_ms)} 启动` : `${state}，按工作节点的时钟提前 ${duration(-row.delay_ms)} 启动`;
}

/** Of a job: what would keep a run of it waiting, without a run to speak of. */
const WAITS: Partial<Record<ExplainedCause, string>> = {
  no_worker_connected: '没有连接任何工作节点：请用 `drumtower work` 启动一个',
  no_worker_for_namespace: '没有工作节点服务这个命名空间：请用绑定到它或未绑定的令牌启动一个',
  no_worker_offers_it: '没有工作节点提供它所需要的执行方式或处理函数',
  too_heavy_for_every_worker: '它的权重超过任何工作节点的容量：请降低 `weight`，或启动更大的工作节点',
  workers_leaving: '能够执行它的工作节点都在维护中、没有消息或有故障',
  waits_for_a_limit: '正在运行的数量已达到限制',
  waits_for_a_rate: '启动速率已达到限制',
  queue_paused: '它的队列已暂停',
};

const WARNINGS: Record<string, string> = {
  never_fires: '永远不会触发',
  no_more_times: '不会再触发',
  dst_gap: '夏令时开始时，时钟会跳过某个时刻',
  dst_fold: '夏令时结束时，某个时刻会出现两次',
  sub_second: '每秒触发不止一次',
  day_rule_or: '日和星期满足其一即可',
  day_rule_and: '日和星期必须同时满足',
  short_months: '有些月份没有这一天',
  calendar_excludes_all: '日历排除了所有的日子',
  calendar_excludes_some: '有些时刻落在不算数的日子',
  jitter_cut: '抖动长于两次触发的间隔，会被截短',
  zone_abbreviation: '时区是缩写，规则可能与当地不同',
  zone_sign: '时区名称中的符号与通常相反',
};

const left = (worker: Worker) => (worker.attempts === 0 ? '没有正在执行的运行' : `还有 ${worker.attempts} 个运行要结束`);
const trust = (worker: Worker) => (worker.probation ? '试用中：一次只交给它一个运行，直到有一个结束' : worker.losses > 0 ? `最近丢失过 ${worker.losses} 次：连续收到心跳之后才会交给它运行` : null);

/** The state and what else is known of a worker say the same as the server's words. */
const WORKERS: Record<WorkerState, (worker: Worker) => string | null> = {
  ONLINE: trust,
  BUSY: trust,
  MAINTENANCE: (worker) => {
    const drain = worker.maintenance;
    if (!drain) return `它正在关闭：${left(worker)}`;
    return `由 ${drain.actor} 排空：${drain.forced && worker.attempts > 0 ? '期限已到，' : ''}${left(worker)}`;
  },
  OFFLINE: (worker) => (worker.last_heartbeat ? `最后一次心跳在 ${at(worker.last_heartbeat)}` : '尚未收到它的心跳'),
  FAULTY: (worker) => `一再丢失（10 分钟内 ${worker.losses} 次）：在 ${at(worker.faulty_until)} 之前不会交给它运行`,
};

export const told: Told = {
  // A page may be older than the server that it asks.
  headline: (code, run) => CAUSES[code]?.(run) ?? null,
  event: (event, run) => HAPPENINGS[event.code]?.(event, run) ?? null,
  advice: (code) => REMEDIES[code] ?? null,
  fate,
  waits: (code) => WAITS[code] ?? null,
  warning: (code) => WARNINGS[code] ?? null,
  problem: (code) => (PROBLEMS as Record<string, string>)[code] ?? null,
  // Where the server has nothing to say, neither has this.
  worker: (worker) => (worker.why === null ? null : (WORKERS[worker.state]?.(worker) ?? null)),
};
