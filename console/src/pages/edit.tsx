// A job that is yet to be.
import { useLocation } from 'wouter';
import { Editor } from '../edit/editor';
import { useMay } from '../api/session';
import { useT } from '../i18n';
import { useNamespace } from '../namespace';
import { PageHead } from '../ui/parts';

const START = (namespace: string) => `kind: Job
name: ""
${namespace && namespace !== 'default' ? `namespace: ${namespace}\n` : ''}schedule:
  - every: 5m
task:
  exec:
    argv: [echo, hello]
`;

export default function EditPage() {
  const t = useT();
  const may = useMay();
  const [namespace] = useNamespace();
  const [, go] = useLocation();
  return (
    <div className="page">
      <PageHead title={t.editor.newTitle} />
      <Editor first={START(namespace)} isNew mayEdit={may('PutJob')} onApplied={(job) => go(`/jobs/${job.namespace}/${job.name}`)} />
    </div>
  );
}
